// Every operation of the document once, by the client that @hey-api/openapi-ts made of it.

import { Calls, given } from "./noted";
import * as esker from "./hey";
import { client } from "./hey/client.gen";

const { base, token, target } = given();
client.setConfig({ baseUrl: base, auth: token });
const calls = new Calls();
const database = "hey";

async function server(): Promise<void> {
  await calls.note("index", 200, esker.index());
  await calls.note("health", 200, esker.health());
  await calls.note("readiness", 200, esker.readiness());
  const text: string = await calls.note("metrics", 200, esker.metrics());
  calls.expect(text.includes("esker_"), text);
  await calls.note("openapi", 200, esker.openapi());
  const body = { name: "calls", scopes: [`read:${database}`], expires: "1h" };
  const made = await calls.note("createToken", 201, esker.createToken({ body }));
  calls.expect(made.token.startsWith("esk_"), made.token);
  await calls.note("listTokens", 200, esker.listTokens());
  const path = { token: made.id };
  await calls.note("rotateToken", 201, esker.rotateToken({ path, query: { grace: "5m" } }));
  await calls.note("removeToken", 204, esker.removeToken({ path }));
  const at = { path: { database } };
  await calls.note("createDatabase", 201, esker.createDatabase(at));
  await calls.note("listDatabases", 200, esker.listDatabases());
  await calls.note("describeDatabase", 200, esker.describeDatabase(at));
  await calls.note("setLimits", 200, esker.setLimits({ ...at, body: { rows: 1_000_000 } }));
  const limits = await calls.note("getLimits", 200, esker.getLimits(at));
  calls.expect(limits.rows === 1_000_000, limits);
}

async function tables(): Promise<void> {
  const path = { database, table: "t" };
  const body = { schema: "id i64 not null, name text, primary key (id)" };
  const table = await calls.note("createTable", 201, esker.createTable({ path, body }));
  calls.expect(table.key[0] === "id", table);
  await calls.note("listTables", 200, esker.listTables({ path: { database } }));
  const changes = { changes: ["ADD COLUMN n i64 DEFAULT 1"] };
  await calls.note("alterTable", 200, esker.alterTable({ path, body: changes }));
  const made = esker.createIndex({ path, body: { index: "unique name" } });
  const indexed = await calls.note("createIndex", 201, made);
  await calls.note("describeTable", 200, esker.describeTable({ path }));
  const index = indexed.indexes[0]?.name ?? "";
  await calls.note("removeIndex", 204, esker.removeIndex({ path: { ...path, index } }));
  await esker.createTable({ path: { database, table: "u" }, body });
  const gone = esker.removeTable({ path: { database, table: "u" } });
  await calls.note("removeTable", 204, gone);
}

async function rows(): Promise<void> {
  const path = { database, table: "t" };
  const some = [{ id: 1, name: "tea" }, { id: 2, name: "salt" }];
  const loaded = await calls.note("loadRows", 200, esker.loadRows({ path, body: some }));
  calls.expect(loaded.rows === 2, loaded);
  const at = { path: { ...path, key: "3" } };
  await calls.note("putRow", 201, esker.putRow({ ...at, body: { name: "flour" } }));
  const row = await calls.note("getRow", 200, esker.getRow(at));
  calls.expect(row["name"] === "flour", row);
  await calls.note("changeRow", 200, esker.changeRow({ ...at, body: { n: 5 } }));
  await calls.note("removeRow", 204, esker.removeRow(at));
  const page = await calls.note("listRows", 200, esker.listRows({ path, query: { limit: 1 } }));
  calls.expect(page.rows?.length === 1 && typeof page.next === "string", page);
  const sql = { sql: "SELECT name FROM t WHERE id = ?", parameters: [2] };
  const answer = await calls.note("query", 200, esker.query({ path: { database }, body: sql }));
  calls.expect(answer.rows?.[0]?.["name"] === "salt", answer);
  const plan = esker.explain({ path: { database }, body: { table: "t" } });
  await calls.note("explain", 200, plan);
}

async function transactions(): Promise<void> {
  const at = { path: { database } };
  const first = await calls.note("begin", 201, esker.begin(at));
  const path = { database, transaction: first.id };
  await calls.note("commit", 204, esker.commit({ path }));
  const second = await calls.once(esker.begin({ ...at, body: { read_only: true } }));
  const ended = { database, transaction: second.id };
  await calls.note("rollback", 204, esker.rollback({ path: ended }));
  await calls.once(esker.begin(at));
  const listed = await calls.note("sessions", 200, esker.sessions(at));
  const session = String(listed.sessions[0]?.id);
  await calls.note("endSession", 204, esker.endSession({ path: { database, session } }));
  await calls.note("slowStatements", 200, esker.slowStatements(at));
}

async function buckets(): Promise<void> {
  const path = { database, bucket: "b" };
  await calls.note("createBucket", 201, esker.createBucket({ path, query: { ttl_s: 3600 } }));
  await calls.note("listBuckets", 200, esker.listBuckets({ path: { database } }));
  await calls.note("describeBucket", 200, esker.describeBucket({ path }));
  const at = { path: { ...path, key: "k" } };
  const body = new Blob([new Uint8Array([0, 255])]);
  const put = esker.putEntry({ ...at, body, headers: { "Esker-TTL": "60" } });
  await calls.note("putEntry", 201, put);
  const value = await calls.note("getEntry", 200, esker.getEntry(at));
  calls.expect(value instanceof Blob && value.size === 2, value);
  const counter = { path: { ...path, key: "count" }, query: { by: 3 } };
  await calls.note("incrementEntry", 200, esker.incrementEntry(counter));
  const some = await calls.note("listEntries", 200, esker.listEntries({ path }));
  calls.expect(some.entries[0]?.key === "count", some);
  await calls.note("removeEntry", 204, esker.removeEntry(at));
  await calls.note("renameBucket", 200, esker.renameBucket({ path, body: { rename: "c" } }));
  await calls.note("removeBucket", 204, esker.removeBucket({ path: { database, bucket: "c" } }));
}

async function administration(): Promise<void> {
  const at = { path: { database } };
  await calls.note("compact", 200, esker.compact(at));
  await calls.note("check", 200, esker.check(at));
  await calls.note("backup", 201, esker.backup({ ...at, body: { name: "monday" } }));
  await calls.note("listBackups", 200, esker.listBackups(at));
  const body = { backup: "monday", of: database };
  const copy = { path: { database: `${database}-copy` } };
  await calls.note("restore", 201, esker.restore({ ...copy, body }));
  await calls.note("removeDatabase", 204, esker.removeDatabase(at));
}

calls.run([server, tables, rows, transactions, buckets, administration], target);
