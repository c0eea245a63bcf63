// Tables of text. Whatever a timeline says comes on the page as text, never as HTML.

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// `heads`: texts; those that begin with '<' are of columns of text, aligned to the left. A cell is a
// text or an element.
function table(caption, heads, rows) {
  const made = element('table');
  made.append(element('caption', caption, 'visually-hidden'));
  const head = element('tr');
  const isText = heads.map((name) => name.startsWith('<'));
  heads.forEach((name, i) => {
    const cell = element('th', isText[i] ? name.slice(1) : name, isText[i] ? 'text' : '');
    cell.scope = 'col';
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
