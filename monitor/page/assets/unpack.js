// The bytes of monitor/page/packing.h.

// Read by hand: a Blob's stream and a Response's buffer take twice as long.
async function inflate(bytes) {
  const {readable, writable} = new DecompressionStream('deflate');
  const writer = writable.getWriter();
  const written = writer.write(bytes).then(() => writer.close());
  const parts = [];
  let length = 0;
  for (let reader = readable.getReader(), part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    length += part.value.length;
  }
  await written;
  const inflated = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    inflated.set(part, at);
    at += part.length;
  }
  return inflated.buffer;
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Columns of one row; `at` moves behind them.
function unpackRow(buffer, at, head, metrics) {
  const bins = head.bins;
  const take = (Type) => {
    const column = new Type(buffer, at.offset, bins);
    at.offset += Math.ceil(bins * Type.BYTES_PER_ELEMENT / 4) * 4;
    return column;
  };
  const shares = () => take(Uint16Array);
  const bands = [shares(), shares(), shares(), shares(), shares()];
  return {
    vm: head.vm, vcpu: head.vcpu, first: head.first, bins, bands,
    starved: shares(), starvedKnown: shares(), resident: shares(), residencyKnown: shares(),
    numbers: head.numbers.map((key) => ({
      ...metrics.find((metric) => metric.key === key), wholes: take(Float32Array), parts: take(Float32Array),
    })),
    events: head.events.map((event) => ({
      name: event.name, estimated: event.estimated, counts: take(Float32Array), known: shares(),
    })),
  };
}

// {head, bins: {origin, width, smallest, rows} or null}
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (!head.bins) return {head, bins: null};
  const at = {offset: 4 + length};
  const rows = new Map();
  for (const row of head.bins.rows) rows.set(rowKey(row.vm, row.vcpu), unpackRow(buffer, at, row, head.metrics));
  return {
    head,
    bins: {
      origin: head.bins.origin_ns, width: head.bins.width_ns, smallest: head.bins.smallest_width_ns, rows,
    },
  };
}

function rowKey(vm, vcpu) {
  return vm + '/' + vcpu;
}
