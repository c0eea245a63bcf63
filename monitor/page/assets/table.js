// Tables of text. Whatever a timeline says comes on the page as text, never as HTML.

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A cell tinted with the colour of a band, the more the larger the share is.
function shareCell(band, share) {
  const cell = element('span', formatShare(share), 'share');
  if (share > 0) cell.style.background = 'color-mix(in srgb, var(--' + band + ') ' + Math.round(share * 40) + '%, transparent)';
  return cell;
}

const textOf = (cell) => (cell instanceof Node ? cell.textContent : String(cell));

// What a cell sorts by: its number with its unit, else nothing.
function numberOf(text) {
  const time = /^(\u2212?)(?:\+?(\d+)d )?(?:(\d+):)?(\d+):([0-9.]+)$/.exec(text.trim());
  if (time) return (time[1] ? -1 : 1) * (((Number(time[2] || 0) * 24 + Number(time[3] || 0)) * 60 + Number(time[4])) * 60 + Number(time[5]));
  const long = /^(?:(\d+) h )?(\d+) min(?: ([0-9.]+) s)?$/.exec(text.trim());
  if (long) return (Number(long[1] || 0) * 60 + Number(long[2])) * 60 + Number(long[3] || 0);
  const found = /^~?(\u2212?[0-9.]+)\+?\s*(%|[kMGTPE]|ns|\u00b5s|ms|s)?$/.exec(text.trim());
  if (!found) return null;
  const units = {k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, ns: 1e-9, '\u00b5s': 1e-6, ms: 1e-3};
  return Number(found[1].replace('\u2212', '-')) * (units[found[2]] || 1);
}

// Largest first, then smallest first; what is no number comes last, in the order of texts.
function sortBy(made, column, descending) {
  const key = (line) => line.cells[column].textContent;
  const lines = [...made.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [numberOf(key(a)), numberOf(key(b))];
    if (x !== null && y !== null) return descending ? y - x : x - y;
    if (x !== null || y !== null) return x === null ? 1 : -1;
    return key(a).localeCompare(key(b)) * (descending ? -1 : 1);
  });
  made.tBodies[0].append(...lines);
  [...made.tHead.rows[0].cells].forEach((cell, i) => {
    if (i === column) cell.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    else cell.removeAttribute('aria-sort');
  });
}

function sortButton(made, name, column) {
  const button = element('button', name, 'sort');
  button.title = 'Sort by ' + name;
  button.addEventListener('click', () => {
    sortBy(made, column, made.tHead.rows[0].cells[column].getAttribute('aria-sort') !== 'descending');
  });
  return button;
}

// `heads`: texts; those that begin with '<' are of columns of text, aligned to the left. A cell is a
// text or an element. Columns in which nothing stands are left out. `sorts`: heads sort the rows.
function table(caption, allHeads, allRows, sorts = false) {
  const kept = allHeads.map((_, i) => i === 0 || allRows.some((row) => row[i] !== undefined && !['', DASH].includes(textOf(row[i]))));
  const heads = allHeads.filter((_, i) => kept[i]);
  const rows = allRows.map((row) => row.filter((_, i) => kept[i]));
  const made = element('table');
  made.append(element('caption', caption, 'visually-hidden'));
  const head = element('tr');
  const isText = heads.map((name) => name.startsWith('<'));
  heads.forEach((name, i) => {
    const title = isText[i] ? name.slice(1) : name;
    const cell = element(title ? 'th' : 'td', undefined, isText[i] ? 'text' : '');
    if (sorts && rows.length > 1 && title) cell.append(sortButton(made, title, i));
    else cell.textContent = title;
    if (title) cell.scope = 'col';
    head.append(cell);
  });
  made.append(element('thead'));
  made.tHead.append(head);
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr');
    row.forEach((value, i) => {
      const cell = element('td', value instanceof Node ? undefined : value, isText[i] ? 'text' : '');
      if (value instanceof Node) cell.append(value);
      line.append(cell);
    });
    body.append(line);
  }
  made.append(body);
  const wide = element('div', undefined, 'wide');
  wide.append(made);
  return wide;
}

function section(title, ...contents) {
  const made = element('section');
  const heading = element('h2', title);
  made.append(heading, ...contents);
  return made;
}
