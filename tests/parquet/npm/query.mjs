// The rows of a query by DuckDB, on one thread, values separated by tabs: node query.mjs SQL
import { DuckDBInstance } from '@duckdb/node-api';

const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
const connection = await instance.connect();
const read = await connection.runAndReadAll(process.argv[2]);
for (const row of read.getRows()) console.log(row.map(String).join('\t'));
connection.closeSync();
