// Every operation of the document once, by openapi-fetch with the types of openapi-typescript.

import createClient from "openapi-fetch";
import { Calls, given } from "./noted";
import type { paths } from "./schema";

const { base, token, target } = given();
const headers = { Authorization: `Bearer ${token}` };
const api = createClient<paths>({ baseUrl: base, headers });
const calls = new Calls();
const database = "fetch";
const at = { params: { path: { database } } };

async function server(): Promise<void> {
  await calls.note("index", 200, api.GET("/"));
  await calls.note("health", 200, api.GET("/healthz"));
  await calls.note("readiness", 200, api.GET("/readyz"));
  const text = await calls.note("metrics", 200, api.GET("/metrics", { parseAs: "text" }));
  calls.expect(text.includes("esker_"), text);
  await calls.note("openapi", 200, api.GET("/openapi.json"));
  const body = { name: "calls", scopes: [`read:${database}`], expires: "1h" };
  const made = await calls.note("createToken", 201, api.POST("/v1/tokens", { body }));
  calls.expect(made.token.startsWith("esk_"), made.token);
  await calls.note("listTokens", 200, api.GET("/v1/tokens"));
  const path = { token: made.id };
  const rotated = { params: { path, query: { grace: "5m" } } };
  await calls.note("rotateToken", 201, api.POST("/v1/tokens/{token}/rotate", rotated));
  await calls.note("removeToken", 204, api.DELETE("/v1/tokens/{token}", { params: { path } }));
  await calls.note("createDatabase", 201, api.PUT("/v1/databases/{database}", at));
  await calls.note("listDatabases", 200, api.GET("/v1/databases"));
  await calls.note("describeDatabase", 200, api.GET("/v1/databases/{database}", at));
  const set = { ...at, body: { rows: 1_000_000 } };
  await calls.note("setLimits", 200, api.PUT("/v1/databases/{database}/limits", set));
  const limits = await calls.note("getLimits", 200, api.GET("/v1/databases/{database}/limits", at));
  calls.expect(limits.rows === 1_000_000, limits);
}

const TABLE = "/v1/databases/{database}/tables/{table}";

async function tables(): Promise<void> {
  const params = { path: { database, table: "t" } };
  const body = { schema: "id i64 not null, name text, primary key (id)" };
  const table = await calls.note("createTable", 201, api.PUT(TABLE, { params, body }));
  calls.expect(table.key[0] === "id", table);
  await calls.note("listTables", 200, api.GET("/v1/databases/{database}/tables", at));
  const changes = { params, body: { changes: ["ADD COLUMN n i64 DEFAULT 1"] } };
  await calls.note("alterTable", 200, api.PATCH(TABLE, changes));
  const made = api.POST(`${TABLE}/indexes`, { params, body: { index: "unique name" } });
  const indexed = await calls.note("createIndex", 201, made);
  await calls.note("describeTable", 200, api.GET(TABLE, { params }));
  const index = indexed.indexes[0]?.name ?? "";
  const gone = { params: { path: { ...params.path, index } } };
  await calls.note("removeIndex", 204, api.DELETE(`${TABLE}/indexes/{index}`, gone));
  const other = { params: { path: { database, table: "u" } } };
  await calls.once(api.PUT(TABLE, { ...other, body }));
  await calls.note("removeTable", 204, api.DELETE(TABLE, other));
}

async function rows(): Promise<void> {
  const params = { path: { database, table: "t" } };
  const some = { params, body: [{ id: 1, name: "tea" }, { id: 2, name: "salt" }] };
  const loaded = await calls.note("loadRows", 200, api.POST(`${TABLE}/rows`, some));
  calls.expect(loaded.rows === 2, loaded);
  const one = { params: { path: { ...params.path, key: "3" } } };
  const row = `${TABLE}/rows/{key}` as const;
  await calls.note("putRow", 201, api.PUT(row, { ...one, body: { name: "flour" } }));
  const found = await calls.note("getRow", 200, api.GET(row, one));
  calls.expect(found["name"] === "flour", found);
  await calls.note("changeRow", 200, api.PATCH(row, { ...one, body: { n: 5 } }));
  await calls.note("removeRow", 204, api.DELETE(row, one));
  const first = { params: { ...params, query: { limit: 1 } } };
  const page = await calls.note("listRows", 200, api.GET(`${TABLE}/rows`, first));
  calls.expect(page.rows?.length === 1 && typeof page.next === "string", page);
  const sql = { sql: "SELECT name FROM t WHERE id = ?", parameters: [2] };
  const asked = api.POST("/v1/databases/{database}/query", { ...at, body: sql });
  const answer = await calls.note("query", 200, asked);
  calls.expect(typeof answer === "object" && answer.rows?.[0]?.["name"] === "salt", answer);
  const plan = api.POST("/v1/databases/{database}/explain", { ...at, body: { table: "t" } });
  await calls.note("explain", 200, plan);
}

const TRANSACTIONS = "/v1/databases/{database}/transactions";

async function transactions(): Promise<void> {
  const first = await calls.note("begin", 201, api.POST(TRANSACTIONS, at));
  const ended = { params: { path: { database, transaction: first.id } } };
  await calls.note("commit", 204, api.POST(`${TRANSACTIONS}/{transaction}/commit`, ended));
  const second = await calls.once(api.POST(TRANSACTIONS, { ...at, body: { read_only: true } }));
  const left = { params: { path: { database, transaction: second.id } } };
  await calls.note("rollback", 204, api.DELETE(`${TRANSACTIONS}/{transaction}`, left));
  await calls.once(api.POST(TRANSACTIONS, at));
  const sessions = api.GET("/v1/databases/{database}/sessions", at);
  const listed = await calls.note("sessions", 200, sessions);
  const session = { params: { path: { database, session: String(listed.sessions[0]?.id) } } };
  const end = api.DELETE("/v1/databases/{database}/sessions/{session}", session);
  await calls.note("endSession", 204, end);
  const slow = api.GET("/v1/databases/{database}/slow-statements", at);
  await calls.note("slowStatements", 200, slow);
}

const BUCKET = "/v1/databases/{database}/buckets/{bucket}";

async function buckets(): Promise<void> {
  const params = { path: { database, bucket: "b" } };
  const lasting = { params: { ...params, query: { ttl_s: 3600 } } };
  await calls.note("createBucket", 201, api.PUT(BUCKET, lasting));
  await calls.note("listBuckets", 200, api.GET("/v1/databases/{database}/buckets", at));
  await calls.note("describeBucket", 200, api.GET(BUCKET, { params }));
  const path = { ...params.path, key: "k" };
  const entry = `${BUCKET}/entries/{key}` as const;
  const put = api.PUT(entry, {
    params: { path, header: { "Esker-TTL": "60" } },
    body: "value",
    bodySerializer: (value) => value,
    headers: { "Content-Type": "application/octet-stream" },
  });
  await calls.note("putEntry", 201, put);
  const value = api.GET(entry, { params: { path }, parseAs: "text" });
  calls.expect((await calls.note("getEntry", 200, value)) === "value", "another value");
  const counter = { params: { path: { ...path, key: "count" }, query: { by: 3 } } };
  await calls.note("incrementEntry", 200, api.POST(`${entry}/increment`, counter));
  const some = await calls.note("listEntries", 200, api.GET(`${BUCKET}/entries`, { params }));
  calls.expect(some.entries[0]?.key === "count", some);
  await calls.note("removeEntry", 204, api.DELETE(entry, { params: { path } }));
  const renamed = api.PATCH(BUCKET, { params, body: { rename: "c" } });
  await calls.note("renameBucket", 200, renamed);
  const gone = { params: { path: { database, bucket: "c" } } };
  await calls.note("removeBucket", 204, api.DELETE(BUCKET, gone));
}

async function administration(): Promise<void> {
  await calls.note("compact", 200, api.POST("/v1/databases/{database}/compact", at));
  await calls.note("check", 200, api.POST("/v1/databases/{database}/check", at));
  const named = { ...at, body: { name: "monday" } };
  await calls.note("backup", 201, api.POST("/v1/databases/{database}/backups", named));
  await calls.note("listBackups", 200, api.GET("/v1/databases/{database}/backups", at));
  const copy = { params: { path: { database: `${database}-copy` } } };
  const body = { backup: "monday", of: database };
  const restored = api.POST("/v1/databases/{database}/restore", { ...copy, body });
  await calls.note("restore", 201, restored);
  await calls.note("removeDatabase", 204, api.DELETE("/v1/databases/{database}", at));
}

calls.run([server, tables, rows, transactions, buckets, administration], target);
