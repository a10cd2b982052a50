-- Questions to the five flights tables. `make_answers.py` asks SQLite, the test asks `esker sql`.
-- Rows are compared in order where the statement has ORDER BY, else as a bag.

-- Counting
SELECT count(*) FROM flights;
SELECT count(*) FROM airlines;
SELECT count(*), count(dep_time), count(tailnum), count(DISTINCT tailnum) FROM flights;
SELECT count(DISTINCT dest), count(DISTINCT origin), count(DISTINCT carrier) FROM flights;
SELECT count(*) FROM planes WHERE speed IS NOT NULL;
SELECT count(*) FROM weather WHERE wind_gust IS NULL AND precip > 0;

-- Plain rows
SELECT * FROM airlines ORDER BY carrier;
SELECT name, carrier FROM airlines WHERE carrier = 'UA';
SELECT faa, name, lat, lon FROM airports WHERE alt > 7000 ORDER BY alt DESC, faa;
SELECT * FROM airports WHERE faa IN ('JFK', 'LGA', 'EWR');
SELECT * FROM flights WHERE flight = 1545 AND month = 1 AND day = 1;
SELECT * FROM planes WHERE tailnum = 'N14228';
SELECT DISTINCT origin FROM flights;
SELECT DISTINCT engine, engines FROM planes;
SELECT DISTINCT dest FROM flights WHERE carrier = 'HA' OR carrier = 'AS' ORDER BY dest DESC;

-- NULL
SELECT count(*) FROM flights WHERE dep_time IS NULL;
SELECT count(*) FROM flights WHERE dep_delay > 0 OR dep_delay <= 0;
SELECT count(*) FROM flights WHERE NOT (dep_delay > 0);
SELECT count(*) FROM flights WHERE dep_delay NOT IN (1, 2, 3);
SELECT count(*) FROM flights WHERE dep_delay NOT IN (1, NULL);
SELECT count(*) FROM flights WHERE arr_delay = NULL;
SELECT count(*) FROM flights WHERE tailnum IS NULL AND NOT (dep_time IS NULL AND arr_time IS NULL);
SELECT month, count(*) - count(dep_time) AS cancelled FROM flights GROUP BY month ORDER BY month;
SELECT speed, count(*) FROM planes GROUP BY speed ORDER BY speed;
SELECT tailnum, year FROM planes WHERE year < 1965 OR year IS NULL AND engines = 4 ORDER BY year, tailnum;
SELECT sum(speed), avg(speed), min(speed), max(speed), count(speed) FROM planes WHERE engines > 4;
SELECT coalesce(speed, 0), count(*) FROM planes WHERE engines >= 3 GROUP BY coalesce(speed, 0);

-- Comparisons, ranges, sets
SELECT count(*) FROM flights WHERE month = 7 AND day = 4 AND origin = 'JFK';
SELECT count(*) FROM flights WHERE dep_delay BETWEEN 15 AND 30;
SELECT count(*) FROM flights WHERE dep_delay NOT BETWEEN -10 AND 10;
SELECT count(*) FROM flights WHERE origin <> 'EWR' AND dest IN ('SFO', 'LAX', 'SEA', 'XXX');
SELECT count(*) FROM flights WHERE arr_delay > dep_delay AND distance >= 2000;
SELECT count(*) FROM flights WHERE (month = 1 OR month = 12) AND NOT (carrier = 'UA' OR carrier = 'DL');
SELECT count(*) FROM weather WHERE temp > 90.5 OR temp < 12;
SELECT count(*) FROM weather WHERE humid >= 99.9 AND visib < 1.5;
SELECT count(*) FROM flights WHERE carrier > 'UA';
SELECT count(*) FROM flights WHERE distance = 1400.0 OR distance > 4982.5;
SELECT count(*) FROM flights WHERE dep_delay > 9223372036854775806;

-- Text patterns
SELECT count(*) FROM planes WHERE manufacturer LIKE 'AIRBUS%';
SELECT DISTINCT manufacturer FROM planes WHERE manufacturer LIKE '%BUS%' ORDER BY manufacturer;
SELECT name FROM airports WHERE name LIKE '%International%' AND name NOT LIKE '%Airport' ORDER BY name LIMIT 20;
SELECT count(*) FROM airports WHERE faa LIKE '_A_';
SELECT count(*) FROM flights WHERE tailnum LIKE 'N%AA' AND dest LIKE 'S__';
SELECT name FROM airlines WHERE name LIKE '%jet%' ORDER BY name;
SELECT lower(carrier), upper(name), length(name) FROM airlines ORDER BY length(name), carrier;

-- Arithmetic
SELECT flight, arr_delay - dep_delay AS gained FROM flights WHERE month = 2 AND day = 3 AND dest = 'MIA' AND carrier = 'AA' ORDER BY gained, flight;
SELECT sum(distance * 2 - 1), sum(air_time) / count(air_time), avg(distance + 0.5) FROM flights;
SELECT count(*) FROM flights WHERE sched_dep_time % 100 = 59 AND sched_dep_time / 100 = 6;
SELECT dep_delay / 10, dep_delay % 10, count(*) FROM flights WHERE dep_delay < -15 GROUP BY dep_delay / 10, dep_delay % 10;
SELECT avg(distance * 60.0 / air_time) FROM flights WHERE air_time > 0;
SELECT 7 / 2, -7 / 2, 7 % 3, -7 % 3, 7.0 / 2, 1 / 0 FROM airlines WHERE carrier = 'AA';
SELECT abs(min(dep_delay)), -max(dep_delay), abs(-1.5) FROM flights;
SELECT tailnum, seats * engines - 3 FROM planes WHERE seats > 375 ORDER BY tailnum;

-- Aggregates
SELECT min(dep_delay), max(dep_delay), avg(dep_delay), sum(dep_delay) FROM flights;
SELECT min(temp), max(temp), avg(temp), sum(precip) FROM weather;
SELECT min(tailnum), max(tailnum), min(dest), max(dest) FROM flights;
SELECT sum(dep_delay), avg(arr_delay), count(*) FROM flights WHERE carrier = 'nobody';
SELECT avg(lat), avg(lon), min(alt), max(alt) FROM airports;
SELECT count(DISTINCT month), count(DISTINCT day) FROM flights WHERE origin = 'LGA';

-- Groups
SELECT carrier, count(*) FROM flights GROUP BY carrier;
SELECT origin, avg(dep_delay) FROM flights GROUP BY origin ORDER BY origin;
SELECT carrier, avg(arr_delay) AS late, count(*) AS flights FROM flights GROUP BY carrier ORDER BY late DESC;
SELECT dest, count(*) AS n FROM flights GROUP BY dest HAVING count(*) > 8000 ORDER BY n DESC;
SELECT month, origin, count(*), sum(distance) FROM flights GROUP BY month, origin ORDER BY month, origin;
SELECT hour, avg(dep_delay) FROM flights WHERE month IN (6, 7, 8) GROUP BY hour ORDER BY hour;
SELECT tailnum, count(*) AS n FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING count(*) >= 400 ORDER BY n DESC, tailnum;
SELECT tailnum, count(*) AS n FROM flights GROUP BY tailnum ORDER BY n DESC, tailnum LIMIT 3;
SELECT origin, dest, avg(air_time) AS minutes FROM flights WHERE distance > 2400 GROUP BY origin, dest ORDER BY minutes DESC, origin, dest;
SELECT manufacturer, count(*), avg(seats), max(year) FROM planes GROUP BY manufacturer HAVING avg(seats) > 150 AND count(*) > 1;
SELECT origin, month, avg(temp), max(wind_gust), sum(precip) FROM weather GROUP BY origin, month;
SELECT dst, tz, count(*) FROM airports GROUP BY dst, tz ORDER BY dst, tz;
SELECT carrier, count(*) FROM flights WHERE dep_delay > 120 GROUP BY carrier HAVING sum(distance) > 1000000 ORDER BY carrier;
SELECT month % 3, count(*), avg(arr_delay) FROM flights GROUP BY month % 3 ORDER BY 1;
SELECT CASE WHEN dep_delay > 60 THEN 'late' WHEN dep_delay > 0 THEN 'soon' WHEN dep_delay IS NULL THEN 'never' ELSE 'early' END AS mood, count(*) FROM flights GROUP BY mood ORDER BY mood;
SELECT carrier, sum(CASE WHEN arr_delay > 30 THEN 1 ELSE 0 END) FROM flights GROUP BY carrier;

-- Order, limit, offset
SELECT carrier, flight, dep_delay FROM flights ORDER BY dep_delay DESC, flight LIMIT 10;
SELECT carrier, flight, tailnum, dep_delay FROM flights WHERE dep_delay IS NOT NULL ORDER BY dep_delay, flight, carrier, tailnum LIMIT 10 OFFSET 5;
SELECT origin, time_hour, temp FROM weather ORDER BY temp DESC, time_hour, origin LIMIT 15;
SELECT faa, alt FROM airports ORDER BY alt, faa LIMIT 5 OFFSET 1450;
SELECT dest, count(*) FROM flights GROUP BY dest ORDER BY count(*) DESC, dest LIMIT 10 OFFSET 10;
SELECT DISTINCT month, day FROM flights WHERE dep_delay > 800 ORDER BY month, day;
SELECT tailnum, year FROM planes WHERE engines = 1 ORDER BY year DESC NULLS LAST, tailnum LIMIT 12;
SELECT tailnum, speed FROM planes WHERE engines > 2 ORDER BY speed NULLS FIRST, tailnum LIMIT 12;
SELECT carrier FROM airlines ORDER BY 1 DESC LIMIT 0;

-- Time
SELECT count(*) FROM flights WHERE time_hour >= '2013-07-04 00:00:00' AND time_hour < '2013-07-05 00:00:00';
SELECT min(time_hour), max(time_hour) FROM flights WHERE origin = 'JFK';
SELECT time_hour, count(*) FROM flights GROUP BY time_hour ORDER BY count(*) DESC, time_hour LIMIT 5;
SELECT origin, time_hour, wind_speed FROM weather WHERE time_hour BETWEEN '2013-10-30 00:00:00' AND '2013-10-30 03:00:00' ORDER BY time_hour, origin;
SELECT count(*) FROM weather WHERE time_hour = '2013-01-01 06:00:00';
