// What DuckDB answers to a query, a line of names and a line per row, separated by tabs: node query.mjs SQL [FOLDER]
import { DuckDBInstance } from '@duckdb/node-api';

const [sql, folder] = process.argv.slice(2);
if (folder !== undefined) process.chdir(folder);
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const answer = await connection.runAndReadAll(sql);
for (const row of [answer.columnNames(), ...answer.getRows()]) console.log(row.map(String).join('\t'));
connection.closeSync();
