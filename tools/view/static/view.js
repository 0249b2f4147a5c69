// The page: what is shown, and what clicks and keys do.
/* global treeOf, firstOpen, differences, markChanges, timesOf, errorsOf, matches, layoutOf, svgText,
   coloringOf, wrapped, visibleOf, escaped, amount, MAX_VISIBLE, HEAD */
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const state = {
  stage: data.stages.length - 1, open: null, color: 'kind', constants: false, selected: null,
  both: false, isTouched: false,
  x: 0, y: 0, zoom: 1,
};
const LEGIBLE = 0.8; // the zoom below which text is hard to read
let tree; let layout; let found = new Map();
let beside = null; // the tree and layout of the stage before, while it is shown, too

function rebuild() {
  const stage = data.stages[state.stage];
  const times = data.kernels ? timesOf(data.records, stage, data.kernels) : null;
  const errors = data.errors ? errorsOf(data.records, stage, data.errors) : null;
  tree = treeOf(data.records, stage, { constants: state.constants, times, errors });
  // In the first stage: what the next one changes.
  const [one, two] = state.stage > 0 ? [state.stage - 1, state.stage] : [0, 1];
  found = two < data.stages.length
    ? differences(data.records, data.stages[one], data.stages[two]) : new Map();
  markChanges(tree, found);
  // As long as the user has opened and closed nothing, each stage opens by itself.
  if (!state.isTouched) state.open = firstOpen(tree.root);
  beside = null;
  if (state.both && one < two && two < data.stages.length) {
    // In the first stage the next one is beside it, so that both are always those compared.
    const other = state.stage > 0 ? one : two;
    beside = { stage: other, tree: treeOf(data.records, data.stages[other],
      { constants: state.constants, times: null }) };
    markChanges(beside.tree, found);
    if (!state.isTouched) for (const key of firstOpen(beside.tree.root)) state.open.add(key);
    for (const node of beside.tree.root.children) if (node.isRegion) state.open.add(node.key);
  }
  for (const node of tree.root.children) if (node.isRegion) state.open.add(node.key);
  draw();
  const name = byId('stage-name');
  name.textContent = `${state.stage + 1} of ${data.stages.length}: ${stage.title}`;
  byId('stage').value = state.stage;
}

function draw() {
  const start = performance.now();
  const { leaves } = visibleOf(tree, state.open);
  if (leaves.length > MAX_VISIBLE) {
    status(`${leaves.length} nodes would be visible; ${MAX_VISIBLE} can be: collapse some boxes`);
    return;
  }
  layout = layoutOf(tree, state.open);
  byId('view').innerHTML = svgText(layout, coloringOf(layout, state.color, found));
  byId('picture-beside').style.display = beside ? '' : 'none';
  if (beside) {
    beside.layout = layoutOf(beside.tree, state.open);
    byId('view-beside').innerHTML = svgText(
      beside.layout, coloringOf(beside.layout, state.color, found));
  }
  place();
  select(state.selected, false);
  const time = Math.round(performance.now() - start);
  status(`${tree.root.ops} ops, ${leaves.length} nodes visible, ${tree.root.flops ? `${amount(tree.root.flops)} FLOPs, ` : ''}`
    + `laid out in ${time} ms`);
  document.body.dataset.ready = 'yes';
}

function status(text) { byId('status').textContent = text; }

function place() {
  const text = `translate(${state.x},${state.y}) scale(${state.zoom})`;
  byId('view').setAttribute('transform', text);
  byId('view-beside').setAttribute('transform', text);
}

// All of the graph, however small.
function fit() {
  const { width, height } = byId('picture').getBoundingClientRect();
  const margin = 12;
  state.zoom = Math.min((width - 2 * margin) / layout.width, (height - 2 * margin) / layout.height, 1.2);
  state.x = (width - layout.width * state.zoom) / 2;
  // Heads of boxes stand above what the layout counts.
  state.y = (height - layout.height * state.zoom) / 2 + HEAD * state.zoom;
  place();
}

// A large graph from its beginning, at a size that can be read.
function showStart() {
  fit();
  if (state.zoom >= LEGIBLE) return;
  const { width, height } = byId('picture').getBoundingClientRect();
  state.zoom = LEGIBLE;
  state.x = (width - layout.width * state.zoom) / 2;
  if (state.x < 0) {
    const first = layout.leaves.reduce((one, other) => (other.y < one.y ? other : one));
    state.x = width / 2 - first.x * state.zoom;
  }
  state.y = Math.max((height - layout.height * state.zoom) / 2, 0) + 20 * state.zoom;
  place();
}

// The visible node that stands for one, which may be in a closed box.
function shownFor(node) {
  for (let one = node; one; one = one.parent) {
    const leaf = layout.leaves.find((other) => other.node === one);
    if (leaf) return leaf;
    const box = layout.boxes.find((other) => other.node === one);
    if (box) return box;
  }
  return null;
}

function reveal(node) {
  state.isTouched = true;
  for (let one = node.parent; one; one = one.parent) state.open.add(one.key);
  draw();
  select(node.key);
  center(node);
}

function center(node) {
  const shown = shownFor(node);
  if (!shown) return;
  const { width, height } = byId('picture').getBoundingClientRect();
  state.zoom = Math.max(state.zoom, 0.8);
  state.x = width / 2 - shown.x * state.zoom;
  state.y = height / 2 - shown.y * state.zoom;
  place();
}

function toggle(key) {
  const before = layout.leaves.concat(layout.boxes).find(({ node }) => node.key === key);
  state.isTouched = true;
  if (state.open.has(key)) state.open.delete(key); else state.open.add(key);
  draw();
  // What was clicked stays where it is.
  const after = layout.leaves.concat(layout.boxes).find(({ node }) => node.key === key);
  if (before && after) {
    state.x += (before.x - after.x) * state.zoom;
    state.y += (before.y - after.y - (after.height - before.height) / -2) * state.zoom;
    place();
  }
}

function nodeOf(key) {
  if (!key) return null;
  const op = /^#(\d+)/.exec(key);
  if (op) return tree.byId.get(Number(op[1])) || beside?.tree.byId.get(Number(op[1])) || null;
  return layout.leaves.concat(layout.boxes).find(({ node }) => node.key === key)?.node || null;
}

function select(key, isNew = true) {
  state.selected = key;
  for (const old of document.querySelectorAll('.selected, .near')) {
    old.classList.remove('selected', 'near');
  }
  if (!key) { if (isNew) byId('details').innerHTML = overview(); return; }
  const quoted = CSS.escape(key);
  for (const one of document.querySelectorAll(`[data-key="${quoted}"]`)) {
    one.classList.add('selected');
  }
  for (const side of ['from', 'to']) {
    for (const edge of document.querySelectorAll(`[data-${side}="${quoted}"]`)) {
      edge.classList.add('near');
    }
  }
  const node = nodeOf(key);
  if (isNew && node) byId('details').innerHTML = node.record ? opDetails(node) : boxDetails(node);
}

// Details

function rows(pairs) {
  const text = pairs.filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `<tr><td>${escaped(name)}</td><td>${value}</td></tr>`).join('');
  return text ? `<table>${text}</table>` : '';
}

function link(record) {
  return `<a data-go="${record.id}">${escaped(record.title)}</a> `
    + escaped(record.names.slice(0, 2).join(', '));
}

function work(node) {
  const time = node.time ? `${(node.time * 1e6).toPrecision(4)} µs` : undefined;
  return [['FLOPs', node.flops ? amount(node.flops) : undefined],
    ['bytes moved', node.bytes ? amount(node.bytes) : undefined],
    ['parameters', node.params ? amount(node.params) : undefined], ['time', time],
    ['error', node.error ? `${node.error.toPrecision(3)} of what is allowed` : undefined]];
}

function overview() {
  const stage = data.stages[state.stage];
  const rewrites = Object.entries(stage.rewrites).map(([name, count]) => [name, String(count)]);
  const changes = [...found.values()].reduce((counts, { status: how }) => (
    { ...counts, [how]: (counts[how] || 0) + 1 }), {});
  return `<h2>${escaped(stage.title)}</h2>${rows([['ops', String(tree.root.ops)],
    ...work(tree.root)])}`
    + (found.size ? `<h3>differences</h3>${
      rows(Object.entries(changes).map(([k, v]) => [k, String(v)]))}` : '')
    + (Object.keys(data.facts || {}).length ? `<h3>file</h3>${
      rows(Object.entries(data.facts).map(([name, value]) => [name, escaped(value)]))}` : '')
    + `${rewrites.length ? `<h3>rewrites</h3>${rows(rewrites)}` : ''}`
    + '<h3>keys</h3>drag and wheel move and zoom; + and − open and close boxes, as a double click '
    + 'does; / searches; arrows left and right go through the stages';
}

function boxDetails(node) {
  const kinds = {};
  (function visit(one) {
    if (one.record && !one.isHead) kinds[one.record.title] = (kinds[one.record.title] || 0) + 1;
    one.children.forEach(visit);
  })(node);
  const sorted = Object.entries(kinds).sort((a, b) => b[1] - a[1]).slice(0, 30);
  return `<h2>${escaped(node.title)}</h2>${rows([['ops', String(node.ops)], ...work(node)])}`
    + `<h3>operators</h3>${rows(sorted.map(([name, count]) => [name, String(count)]))}`;
}

function opDetails(node) {
  const record = node.record;
  const entry = found.get(record.id);
  const attrs = Object.entries(record.attrs).map(([name, value]) => {
    const was = entry?.was?.attrs[name];
    const old = was !== undefined && was !== value ? `<span class="was">${escaped(was)}</span> ` : '';
    return [name, old + escaped(value)];
  });
  const name = record.op === record.title ? record.op : `${record.title} (${record.op})`;
  return `<h2>${escaped(name)}</h2>`
    + rows([['source nodes', record.names.map(escaped).join('<br>')], ...work(node)])
    + difference(entry)
    + (attrs.length ? `<h3>attributes</h3>${rows(attrs)}` : '')
    + `<h3>operands</h3>${operands(record)}`
    + `<h3>results</h3>${rows(record.types.map((type, k) => [String(k), escaped(type)]))}`
    + `<h3>used by</h3>${users(record)}`
    + weights(record);
}

function difference(entry) {
  if (!entry) return '';
  const related = entry.from || entry.to || [];
  if (entry.was && entry.was.in.length !== entry.record.in.length) {
    return `<h3>changed</h3>${entry.was.in.length} operands before`;
  }
  const word = entry.from ? 'in place of' : 'became';
  return `<h3>${entry.status}</h3>${related.length
    ? `${word}<br>${related.slice(0, 20).map(link).join('<br>')}` : ''}`;
}

function recordsById() {
  return new Map(data.stages[state.stage].ops.map((k) => [data.records[k].id, data.records[k]]));
}

function operands(record) {
  const known = recordsById();
  return rows(record.in.map(([id, index], k) => {
    const source = known.get(id);
    const role = (record.roles || [])[k] || String(k);
    if (!source) return [role, ''];
    const type = escaped(source.types[index] || '');
    return [role, `${link(source)}<br>${type}${weights(source)}`];
  }));
}

function users(record) {
  const found_ = data.stages[state.stage].ops.map((k) => data.records[k])
    .filter((other) => other.in.some(([id]) => id === record.id));
  return found_.slice(0, 30).map(link).join('<br>');
}

function weights(record) {
  if (record.weights === undefined) return '';
  const w = data.weights[record.weights];
  const most = Math.max(...w.histogram);
  const number = (value) => Number(value.toPrecision(5)).toString();
  const bars = w.histogram.map((count, k) => {
    const height = (count / most) * 60;
    return `<rect x="${k * 9}" y="${60 - height}" width="8" height="${height}"/>`;
  }).join('');
  const sample = w.sampled < w.count ? ` (histogram of ${w.sampled} of them)` : '';
  return rows([['elements', `${w.count}${sample}`],
    ['range', `${number(w.minimum)} to ${number(w.maximum)}`],
    ['mean', `${number(w.mean)}, deviation ${number(w.deviation)}`],
    ['zeros', w.zeros ? `${w.zeros} (${((100 * w.zeros) / w.count).toPrecision(3)} %)` : undefined],
    ['not finite', w.not_finite ? String(w.not_finite) : undefined],
    ['values', w.first.map((value) => (typeof value === 'number' ? number(value) : value)).join(', ')
      + (w.count > w.first.length ? ', …' : '')]])
    + `<svg class="histogram" width="290" height="60">${bars}</svg>`;
}

// What the user does

function go(id) {
  const node = tree.byId.get(id);
  if (node) { reveal(node); return; }
  // An op of another stage, or a constant that is not drawn.
  const index = data.stages.findIndex((stage) => stage.ops.some((k) => data.records[k].id === id));
  const record = data.stages[index].ops.map((k) => data.records[k]).find((one) => one.id === id);
  const inThis = recordsById().has(id);
  byId('details').innerHTML = `${inThis ? '' : `<em>in ${escaped(data.stages[index].title)}</em>`}`
    + opDetails({ record, flops: record.flops || 0, bytes: record.bytes || 0, time: 0 });
}

function search(text) {
  if (!text) { select(null); return; }
  const hits = matches(tree, text);
  byId('details').innerHTML = `<h2>${hits.length} found</h2>${
    hits.slice(0, 100).map((node) => `<div class="hit">${link(node.record)}</div>`).join('')}`;
}

function expandAll() {
  // Level by level, as long as the picture stays legible.
  state.isTouched = true;
  let { leaves } = visibleOf(tree, state.open);
  let visible = leaves.length;
  for (;;) {
    let opened = false;
    for (const node of leaves) {
      const more = node.children.length - 1;
      if (node.children.length && visible + more <= MAX_VISIBLE / 2) {
        state.open.add(node.key);
        visible += more;
        opened = true;
      }
    }
    if (!opened) break;
    ({ leaves } = visibleOf(tree, state.open));
  }
  draw(); showStart();
}

function start() {
  byId('title').textContent = data.title;
  const colors = [['kind', 'kind'], ['flops', 'FLOPs'], ['bytes', 'bytes'], ['params', 'parameters']];
  if (data.kernels) colors.push(['time', 'time']);
  if (data.errors) colors.push(['error', 'error']);
  if (data.stages.length > 1) colors.push(['difference', 'difference']);
  byId('color').innerHTML = colors.map(([value, text]) => `<option value="${value}">${text}</option>`)
    .join('');
  byId('stage').max = data.stages.length - 1;
  byId('stages').hidden = data.stages.length < 2;
  byId('stages').style.display = data.stages.length < 2 ? 'none' : '';
  if (data.kernels) state.color = 'time';
  if (data.errors) state.color = 'error';
  if (data.stages.length === 2) { state.color = 'difference'; state.both = true; }
  byId('both').checked = state.both;
  byId('both').parentElement.style.display = data.stages.length < 2 ? 'none' : '';
  byId('color').value = state.color;
  rebuild(); showStart(); select(null);
}

function setStage(value) {
  state.stage = Math.max(0, Math.min(data.stages.length - 1, value));
  rebuild();
  if (state.selected) select(state.selected); else select(null);
}

byId('color').onchange = (event) => { state.color = event.target.value; draw(); };
byId('constants').onchange = (event) => { state.constants = event.target.checked; rebuild(); };
byId('both').onchange = (event) => { state.both = event.target.checked; rebuild(); showStart(); };
byId('expand').onclick = expandAll;
byId('collapse').onclick = () => {
  state.isTouched = true;
  state.open = new Set(['']);
  rebuild(); showStart();
};
byId('fit').onclick = fit;
byId('stage').oninput = (event) => setStage(Number(event.target.value));
byId('earlier').onclick = () => setStage(state.stage - 1);
byId('later').onclick = () => setStage(state.stage + 1);
byId('search').oninput = (event) => search(event.target.value);
byId('save').onclick = () => {
  const text = wrapped(byId('view').innerHTML, layout, document.querySelector('style').textContent);
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  anchor.download = `${data.title}.svg`;
  anchor.click();
};
byId('details').onclick = (event) => {
  const target = event.target.closest('[data-go]');
  if (target) go(Number(target.dataset.go));
};

let drag = null;
window.onpointermove = (event) => {
  if (!drag) return;
  const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
  if (Math.abs(x - state.x) + Math.abs(y - state.y) > 3) drag.moved = true;
  if (drag.moved) { [state.x, state.y] = [x, y]; place(); }
};
// A click that ends a drag comes after this, and must still find it.
window.onpointerup = () => setTimeout(() => { drag = null; });

for (const picture of [byId('picture'), byId('picture-beside')]) {
  picture.onpointerdown = (event) => {
    drag = { x: event.clientX - state.x, y: event.clientY - state.y, moved: false };
  };
  picture.onclick = (event) => {
    if (drag && drag.moved) return;
    const button = event.target.closest('[data-toggle]');
    if (button) { toggle(button.dataset.toggle); return; }
    select(event.target.closest('[data-key]')?.dataset.key || null);
  };
  picture.ondblclick = (event) => {
    const node = nodeOf(event.target.closest('[data-key]')?.dataset.key);
    if (node && node.children.length) toggle(node.key);
  };
  picture.onwheel = (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * 0.0015);
    const zoom = Math.max(Math.min(0.05, state.zoom), Math.min(4, state.zoom * factor));
    const { left, top } = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    state.x = x - ((x - state.x) * zoom) / state.zoom;
    state.y = y - ((y - state.y) * zoom) / state.zoom;
    state.zoom = zoom;
    place();
  };
}
window.onkeydown = (event) => {
  if (event.target.id === 'search') {
    if (event.key === 'Escape') { event.target.value = ''; event.target.blur(); search(''); }
    if (event.key === 'Enter') document.querySelector('#details .hit a')?.click();
    return;
  }
  if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
  if (event.key === 'ArrowLeft') setStage(state.stage - 1);
  if (event.key === 'ArrowRight') setStage(state.stage + 1);
};

start();
