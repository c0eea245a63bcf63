// Has DuckDB write the rows of a Parquet file to another one, from a table in memory and on one thread:
//   node copy.mjs FILE.parquet OUT.parquet TIMES
// Prints rows, bytes of OUT and the seconds of the processor of the fastest of TIMES runs.
import { statSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

const [from, to, times] = process.argv.slice(2);
const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
const connection = await instance.connect();
await connection.run(`CREATE TABLE rows AS SELECT * FROM read_parquet('${from}')`);
const rows = (await connection.runAndReadAll('SELECT count(*) FROM rows')).getRows()[0][0];
let fastest = Infinity;
for (let i = 0; i < Number(times); i += 1) {
  const before = process.cpuUsage();
  await connection.run(`COPY rows TO '${to}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)`);
  const { user, system } = process.cpuUsage(before);
  fastest = Math.min(fastest, (user + system) / 1e6);
}
console.log(`${rows} ${statSync(to).size} ${fastest}`);
connection.closeSync();
