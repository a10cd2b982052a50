//! The questions of hits. Each `ORDER BY` leaves no choice, so that answers can be compared.

use crate::workload::Question;

/// In place of `{many}`: a group that has more rows than this is a large one.
const SHARE_OF_ROWS: u64 = 1_000;

/// In place of `{sums}`: so many sums in one question.
const SUMS: usize = 90;

const QUESTIONS: [&str; 43] = [
    "SELECT count(*) FROM hits",
    "SELECT count(*) FROM hits WHERE adv_engine_id <> 0",
    "SELECT sum(adv_engine_id), count(*), avg(resolution_width) FROM hits",
    "SELECT avg(user_id) FROM hits",
    "SELECT count(DISTINCT user_id) FROM hits",
    "SELECT count(DISTINCT search_phrase) FROM hits",
    "SELECT min(event_date), max(event_date), min(price), max(load_seconds) FROM hits",
    "SELECT adv_engine_id, count(*) AS n FROM hits WHERE adv_engine_id <> 0 \
     GROUP BY adv_engine_id ORDER BY n DESC, adv_engine_id",
    "SELECT region_id, count(DISTINCT user_id) AS users FROM hits \
     GROUP BY region_id ORDER BY users DESC, region_id LIMIT 10",
    "SELECT region_id, sum(adv_engine_id), count(*) AS n, avg(resolution_width), \
     count(DISTINCT user_id) FROM hits GROUP BY region_id ORDER BY n DESC, region_id LIMIT 10",
    "SELECT mobile_model, count(DISTINCT user_id) AS users FROM hits WHERE mobile_model <> '' \
     GROUP BY mobile_model ORDER BY users DESC, mobile_model LIMIT 10",
    "SELECT mobile_phone, mobile_model, count(DISTINCT user_id) AS users FROM hits \
     WHERE mobile_model <> '' GROUP BY mobile_phone, mobile_model \
     ORDER BY users DESC, mobile_phone, mobile_model LIMIT 10",
    "SELECT search_phrase, count(*) AS n FROM hits WHERE search_phrase <> '' \
     GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10",
    "SELECT search_phrase, count(DISTINCT user_id) AS users FROM hits WHERE search_phrase <> '' \
     GROUP BY search_phrase ORDER BY users DESC, search_phrase LIMIT 10",
    "SELECT search_engine_id, search_phrase, count(*) AS n FROM hits WHERE search_phrase <> '' \
     GROUP BY search_engine_id, search_phrase \
     ORDER BY n DESC, search_engine_id, search_phrase LIMIT 10",
    "SELECT user_id, count(*) AS n FROM hits GROUP BY user_id ORDER BY n DESC, user_id LIMIT 10",
    "SELECT user_id, search_phrase, count(*) AS n FROM hits GROUP BY user_id, search_phrase \
     ORDER BY n DESC, user_id, search_phrase LIMIT 10",
    "SELECT user_id, search_phrase, sum(price) FROM hits GROUP BY user_id, search_phrase \
     ORDER BY user_id, search_phrase LIMIT 10",
    "SELECT user_id, extract(minute FROM event_time) AS m, search_phrase, count(*) AS n FROM hits \
     GROUP BY user_id, m, search_phrase ORDER BY n DESC, user_id, m, search_phrase LIMIT 10",
    "SELECT watch_id, event_time FROM hits WHERE user_id = 6809596874577139809 \
     ORDER BY event_time, watch_id",
    "SELECT count(*) FROM hits WHERE url LIKE '%/garden/%'",
    "SELECT search_phrase, min(url), count(*) AS n FROM hits \
     WHERE url LIKE '%/garden/%' AND search_phrase <> '' \
     GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10",
    "SELECT search_phrase, min(url), min(title), count(*) AS n, count(DISTINCT user_id) FROM hits \
     WHERE title LIKE '%river%' AND url NOT LIKE '%shop%' AND search_phrase <> '' \
     GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10",
    "SELECT * FROM hits WHERE url LIKE '%/bridge/%' ORDER BY event_time, watch_id LIMIT 10",
    "SELECT search_phrase FROM hits WHERE search_phrase <> '' \
     ORDER BY event_time, watch_id LIMIT 10",
    "SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY search_phrase LIMIT 10",
    "SELECT search_phrase FROM hits WHERE search_phrase <> '' \
     ORDER BY event_time, search_phrase LIMIT 10",
    "SELECT counter_id, avg(length(url)) AS l, count(*) AS n FROM hits WHERE url <> '' \
     GROUP BY counter_id HAVING count(*) > {many} ORDER BY l DESC, counter_id LIMIT 25",
    "SELECT regexp_replace(referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS host, \
     avg(length(referer)) AS l, count(*) AS n, min(referer) FROM hits WHERE referer <> '' \
     GROUP BY host HAVING count(*) > {many} ORDER BY l DESC, host LIMIT 25",
    "SELECT {sums} FROM hits",
    "SELECT search_engine_id, client_ip, count(*) AS n, sum(is_refresh), avg(resolution_width) \
     FROM hits WHERE search_phrase <> '' GROUP BY search_engine_id, client_ip \
     ORDER BY n DESC, search_engine_id, client_ip LIMIT 10",
    "SELECT watch_id, client_ip, count(*) AS n, sum(is_refresh), avg(resolution_width) FROM hits \
     WHERE search_phrase <> '' GROUP BY watch_id, client_ip \
     ORDER BY n DESC, watch_id, client_ip LIMIT 10",
    "SELECT watch_id, client_ip, count(*) AS n, sum(is_refresh), avg(resolution_width) FROM hits \
     GROUP BY watch_id, client_ip ORDER BY n DESC, watch_id, client_ip LIMIT 10",
    "SELECT url, count(*) AS n FROM hits GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "SELECT 1, url, count(*) AS n, avg(duration_ms) FROM hits GROUP BY url \
     ORDER BY n DESC, url LIMIT 10",
    "SELECT client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) AS n FROM hits \
     GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3 \
     ORDER BY n DESC, client_ip LIMIT 10",
    "SELECT url, count(*) AS n FROM hits WHERE counter_id = 3 AND event_date >= DATE '2024-03-05' \
     AND event_date <= DATE '2024-03-25' AND is_refresh = 0 AND url <> '' \
     GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "SELECT title, count(*) AS n FROM hits WHERE counter_id = 3 \
     AND event_date BETWEEN DATE '2024-03-05' AND DATE '2024-03-25' AND is_refresh = 0 \
     AND title <> '' GROUP BY title ORDER BY n DESC, title LIMIT 10",
    "SELECT url, count(*) AS n FROM hits WHERE counter_id < 20 AND is_link <> 0 \
     AND is_download = 0 AND event_date >= DATE '2024-03-05' \
     GROUP BY url ORDER BY n DESC, url LIMIT 10 OFFSET 1000",
    "SELECT traffic_source, search_engine_id, adv_engine_id, \
     CASE WHEN search_engine_id = 0 AND adv_engine_id = 0 THEN referer ELSE '' END AS source, \
     url, count(*) AS n FROM hits WHERE counter_id < 20 AND is_refresh = 0 \
     GROUP BY traffic_source, search_engine_id, adv_engine_id, source, url \
     ORDER BY n DESC, traffic_source, search_engine_id, adv_engine_id, source, url \
     LIMIT 10 OFFSET 1000",
    "SELECT country, event_date, count(*) AS n, sum(price) FROM hits \
     WHERE traffic_source IN (-1, 6) AND country IN ('DE', 'FR', 'SE') \
     GROUP BY country, event_date ORDER BY n DESC, country, event_date LIMIT 10 OFFSET 50",
    "SELECT window_width, window_height, count(*) AS n FROM hits WHERE is_mobile = 0 \
     GROUP BY window_width, window_height ORDER BY n DESC, window_width, window_height \
     LIMIT 10 OFFSET 10000",
    "SELECT date_trunc('minute', event_time) AS m, count(*) AS n FROM hits \
     WHERE event_date BETWEEN DATE '2024-03-14' AND DATE '2024-03-15' \
     GROUP BY m ORDER BY m LIMIT 10 OFFSET 1000",
];

/// What SQLite reads in place of what it has not: times are texts there.
const IN_SQLITE: [(&str, &str); 3] = [
    ("extract(minute FROM event_time)", "cast(strftime('%M', event_time) AS integer)"),
    ("date_trunc('minute', event_time)", "strftime('%Y-%m-%d %H:%M:00', event_time)"),
    ("DATE '", "'"),
];

/// All questions, for so many rows.
pub fn all(rows: u64) -> Vec<Question> {
    let sums = (0..SUMS).map(|number| format!("sum(resolution_width + {number})"));
    let sums = sums.collect::<Vec<_>>().join(", ");
    let many = (rows / SHARE_OF_ROWS).to_string();
    let question = |(number, text): (usize, &str)| {
        let text = text.replace("{sums}", &sums).replace("{many}", &many);
        let mut question = Question::new(format!("h{number}"), text);
        let sqlite = question.sqlite.take().filter(|text| !text.contains("regexp"));
        let in_sqlite = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        question.sqlite = sqlite.map(|text| IN_SQLITE.iter().fold(text, in_sqlite));
        question
    };
    (1..).zip(QUESTIONS).map(question).collect()
}
