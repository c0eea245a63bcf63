// Reads Parquet files by DuckDB and by hyparquet, which share no code, and holds every value, null and statistic
// against what was meant.
//   node compare.mjs csv FILE.parquet FILE.csv [...]       as `vcpulse export` or `rollup` writes both
//   node compare.mjs drawn FILE.parquet FILE.jsonl [...]   as draw_rows does
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';
import { asyncBufferFromFile, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const parsers = {
  timestampFromNanoseconds: (nanos) => nanos,
  stringFromBytes: (bytes) => bytes && new TextDecoder('utf-8', { fatal: true }).decode(bytes),
};
const bits = new DataView(new ArrayBuffer(8));

function bitsOf(number) {
  bits.setFloat64(0, number);
  return bits.getBigUint64(0);
}

// Of each kind of column: the type that DuckDB gives it, and whether a value is the one of a text.
const KINDS = {
  boolean: { type: 'BOOLEAN', same: (value, text) => value === (text === 'true') },
  int32: { type: 'INTEGER', same: (value, text) => typeof value === 'number' && String(value) === text },
  int64: { type: 'BIGINT', same: (value, text) => typeof value === 'bigint' && String(value) === text },
  double: { type: 'DOUBLE', same: (value, text) => typeof value === 'number' && Object.is(value, Number(text)) },
  bits: { type: 'DOUBLE', same: (value, text) => typeof value === 'number' && String(bitsOf(value)) === text },
  text: { type: 'VARCHAR', same: (value, text) => value === text },
  // DuckDB keeps microseconds of an instant in UTC.
  instant: {
    type: 'TIMESTAMP WITH TIME ZONE',
    same: (value, text) =>
      typeof value === 'bigint' ? String(value) === text : value.micros === BigInt(text) / 1000n,
  },
};
const DRAWN_KINDS = ['boolean', 'int32', 'int64', 'bits', 'text', 'instant'];
const TEXTS = ['vm', 'vm_uuid', 'state', 'band', 'raw_band', 'rule'];
const TEXTS_OF_ROLLUP = [
  'agent', 'host', 'labels', 'boot_id', 'kernel_release', 'stream', 'vm_name', 'vm_uuid', 'classifier', 'profile',
  'tool_version', 'other_counts',
];
const SHARE = /_counted_share$/;

// Columns between those of readings and of verdicts are metrics.
function kindsOfCsv(names) {
  if (names[0] === 'window_start_ns') {
    return names.map((name) => (TEXTS_OF_ROLLUP.includes(name) ? KINDS.text : KINDS.int64));
  }
  const metrics = names.indexOf('state');
  return names.map((name, i) => {
    if (TEXTS.includes(name)) return KINDS.text;
    if (name === 'starved') return KINDS.boolean;
    return i > metrics || SHARE.test(name) ? KINDS.double : KINDS.int64;
  });
}

function cellsOf(record) {
  if (!record.includes('"')) return record.split(',');
  const cells = [];
  for (const match of record.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g)) {
    cells.push(match[1] === undefined ? match[2] : match[1].replaceAll('""', '"'));
  }
  return cells;
}

// The records of RFC 4180: a line, or several where a quoted cell holds line feeds.
async function* recordsOf(path) {
  let open = '';
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: 0 })) {
    const record = open === '' ? line : open + '\n' + line;
    open = record.includes('"') && record.split('"').length % 2 === 0 ? record : '';
    if (open === '') yield cellsOf(record);
  }
}

// First { names, kinds }, then rows of texts, null where there is no value.
async function* expectedOfCsv(path) {
  let width = 0;
  for await (const cells of recordsOf(path)) {
    if (width === 0) {
      width = cells.length;
      yield { names: cells, kinds: kindsOfCsv(cells) };
    } else {
      if (cells.length !== width) throw new Error(`${path}: a row of ${cells.length} cells, not ${width}`);
      yield cells.map((cell) => (cell === '' ? null : cell));
    }
  }
}

async function* expectedOfDrawn(path) {
  let first = true;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const parsed = JSON.parse(line);
    if (first) {
      yield { names: parsed.map((column) => column.name), kinds: parsed.map((column) => KINDS[DRAWN_KINDS[column.type]]) };
      first = false;
    } else {
      yield parsed.map((value) => (typeof value === 'boolean' ? String(value) : value));
    }
  }
}

async function* rowsOfDuckdb(connection, path) {
  const result = await connection.stream(`SELECT * FROM read_parquet('${path}')`);
  for (;;) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return;
    yield* chunk.getRows();
  }
}

async function* rowsOfHyparquet(path, metadata) {
  const file = await asyncBufferFromFile(path);
  let begin = 0;
  for (const group of metadata.row_groups) {
    const end = begin + Number(group.num_rows);
    let rows = [];
    await parquetRead({
      file, metadata, compressors, parsers, rowStart: begin, rowEnd: end, onComplete: (read) => { rows = read; },
    });
    if (rows.length !== end - begin) throw new Error(`${path}: ${rows.length} rows in a group of ${end - begin}`);
    yield* rows;
    begin = end;
  }
}

function less(a, b) {
  return typeof a === 'string' ? Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0 : a < b;
}

// What the statistics of a row group have to say of a column.
class Bounds {
  nulls = 0n;
  values = 0;
  nan = false;

  add(value) {
    if (value === null || value === undefined) {
      this.nulls += 1n;
      return;
    }
    this.nan ||= Number.isNaN(value);
    if (this.values === 0 || less(value, this.least)) this.least = value;
    if (this.values === 0 || less(this.most, value)) this.most = value;
    this.values += 1;
  }

  problem(statistics) {
    const { null_count: nulls, min_value: least, max_value: most } = statistics;
    if (nulls !== this.nulls) return `null_count ${nulls}, not ${this.nulls}`;
    const long = (text) => typeof text === 'string' && Buffer.byteLength(text) > 64;
    if (this.values === 0 || this.nan || long(this.least) || long(this.most)) {
      return least === undefined && most === undefined ? null : 'there are bounds';
    }
    // == : a zero stands for both.
    if (least == this.least && most == this.most) return null;
    return `bounds ${least} and ${most}, not ${this.least} and ${this.most}`;
  }
}

function checkStatistics(group, names, bounds) {
  group.columns.forEach((column, i) => {
    const problem = bounds[i].problem(column.meta_data.statistics);
    if (problem !== null) throw new Error(`statistics of ${names[i]}: ${problem}`);
  });
}

async function compare(expected, rows, { names, kinds }, groups = null) {
  let count = 0;
  let group = 0;
  let left = groups?.length > 0 ? Number(groups[0].num_rows) : 0;
  let bounds = names.map(() => new Bounds());
  for await (const row of rows) {
    const { value: texts, done } = await expected.next();
    if (done) throw new Error(`more than ${count} rows`);
    for (let i = 0; i < names.length; i += 1) {
      const value = row[i] === undefined ? null : row[i];
      if (texts[i] === null ? value !== null : value === null || !kinds[i].same(value, texts[i])) {
        throw new Error(`row ${count}, ${names[i]}: ${value?.micros ?? value}, not ${texts[i]}`);
      }
    }
    count += 1;
    if (groups === null) continue;
    for (let i = 0; i < names.length; i += 1) bounds[i].add(row[i]);
    left -= 1;
    if (left > 0) continue;
    checkStatistics(groups[group], names, bounds);
    bounds = names.map(() => new Bounds());
    group += 1;
    left = group < groups.length ? Number(groups[group].num_rows) : 0;
  }
  if (!(await expected.next()).done) throw new Error(`only ${count} rows`);
  return count;
}

async function compareFile(connection, path, expectedPath, expectedOf) {
  const metadata = await parquetMetadataAsync(await asyncBufferFromFile(path), { parsers });
  const described = await connection.runAndReadAll(`DESCRIBE SELECT * FROM read_parquet('${path}')`);
  const opened = async () => {
    const expected = expectedOf(expectedPath);
    return [expected, (await expected.next()).value];
  };
  let [expected, columns] = await opened();
  const found = JSON.stringify(described.getRows().map((row) => [row[0], row[1]]));
  const wanted = JSON.stringify(columns.names.map((name, i) => [name, columns.kinds[i].type]));
  if (found !== wanted) throw new Error(`DuckDB sees the columns ${found}, not ${wanted}`);
  const by = async (reader, run) => {
    try {
      return await run();
    } catch (error) {
      throw new Error(`${reader}: ${error.message}`);
    }
  };
  await by('DuckDB', () => compare(expected, rowsOfDuckdb(connection, path), columns));
  [expected, columns] = await opened();
  const rows = await by('hyparquet', () =>
    compare(expected, rowsOfHyparquet(path, metadata), columns, metadata.row_groups));
  console.log(`${path}: ${rows} rows of ${columns.names.length} columns`);
}

const [mode, ...paths] = process.argv.slice(2);
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
for (let i = 0; i + 1 < paths.length; i += 2) {
  try {
    await compareFile(connection, paths[i], paths[i + 1], mode === 'csv' ? expectedOfCsv : expectedOfDrawn);
  } catch (error) {
    console.error(`${paths[i]}: ${error.message}`);
    process.exitCode = 1;
  }
}
connection.closeSync();
