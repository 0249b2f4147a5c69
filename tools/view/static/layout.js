// Where the visible nodes are, by dagre, and the picture as SVG text. Nothing here needs a browser.
/* global dagre, visibleOf, treeOf, firstOpen, timesOf, errorsOf */
'use strict';

const COLORS = {
  product: '#cfe3ff', norm: '#e3d7ff', reduce: '#ffe2c4', move: '#eeeeee', map: '#d8f3dc',
  constant: '#fff6c2', region: '#ece7ff', edge: '#ffffff', scope: '#f7f7f7',
};
const DIFFERENCE = { added: '#9be7a5', changed: '#ffe08a', removed: '#ffb3ad' };

const CHAR = 6.4;
const HEAD = 20;

function escaped(text) {
  return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

function amount(value) {
  for (const [unit, size] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
    if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  }
  return `${value}`;
}

function linesOf(node) {
  const lines = [cut(node.title || 'op', 40)];
  const record = node.record;
  if (node.children.length) lines.push(`${node.ops} ops`);
  else if (record && record.label) lines.push(cut(record.label, 36));
  else if (record && record.names.length) {
    const short = record.names.map((name) => name.split('/').pop());
    const text = cut(short.join(', '), 36);
    if (text !== lines[0]) lines.push(text); // exporters call nodes as their operators
  }
  if (record && !node.children.length && record.types.length) lines.push(cut(record.types[0], 36));
  return lines;
}

function layoutOf(tree, open) {
  const visible = visibleOf(tree, open);
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 18, ranksep: 34, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of visible.boxes) graph.setNode(node.key, { paddingTop: HEAD });
  for (const node of visible.leaves) {
    const lines = linesOf(node);
    const width = Math.max(60, ...lines.map((line) => line.length * CHAR + (node.children.length ? 40 : 20)));
    graph.setNode(node.key, { width, height: 12 + 14 * lines.length, lines });
  }
  for (const node of [...visible.boxes, ...visible.leaves]) {
    if (node.parent && graph.hasNode(node.parent.key) && node.parent.key !== '') {
      graph.setParent(node.key, node.parent.key);
    }
  }
  for (const edge of visible.edges) graph.setEdge(edge.from.key, edge.to.key, { edge });
  dagre.layout(graph);
  const size = graph.graph();
  const place = (node) => ({ node, ...graph.node(node.key) });
  return {
    width: size.width || 10,
    height: (size.height || 10) + HEAD,
    boxes: visible.boxes.map(place),
    leaves: visible.leaves.map(place),
    edges: graph.edges().map((key) => {
      const { points, edge } = graph.edge(key);
      return { ...edge, points };
    }),
  };
}

function pathOf(points) {
  const at = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;
  let text = `M${at(points[0])}`;
  for (let k = 1; k < points.length - 1; k += 1) {
    const next = k + 1 < points.length - 1
      ? { x: (points[k].x + points[k + 1].x) / 2, y: (points[k].y + points[k + 1].y) / 2 }
      : points[k + 1];
    text += ` Q${at(points[k])} ${at(next)}`;
  }
  return points.length > 2 ? text : `${text} L${at(points[points.length - 1])}`;
}

// White to red, by a share of the largest value; small shares are told apart, too.
function heat(share) {
  const part = Math.sqrt(Math.max(0, Math.min(1, share)));
  return `rgb(255,${Math.round(250 - 170 * part)},${Math.round(240 - 200 * part)})`;
}

function fillOf(node, coloring) {
  if (coloring.by === 'difference') {
    const entry = node.record && coloring.found.get(node.record.id);
    if (entry) return DIFFERENCE[entry.status];
    return node.changes ? '#fdf3d0' : '#f4f4f4';
  }
  if (coloring.by !== 'kind') return heat(coloring.largest ? node[coloring.by] / coloring.largest : 0);
  return COLORS[node.children.length && !node.isRegion ? 'scope' : node.record?.kind] || COLORS.scope;
}

function toggleOf(key, x, y, sign) {
  return `<g class="toggle" data-toggle="${escaped(key)}" transform="translate(${x},${y})">`
    + `<rect width="14" height="14" rx="3"/><text x="7" y="11" text-anchor="middle">${sign}</text></g>`;
}

function boxText(box, coloring) {
  const { node, x, y, width, height } = box;
  const [left, top] = [x - width / 2, y - height / 2 - HEAD];
  const changes = coloring.by === 'difference' && node.changes ? `  (${node.changes} different)` : '';
  const title = cut(`${node.title}${changes}`, Math.max(8, Math.floor((width - 30) / CHAR)));
  return `<g class="group" data-key="${escaped(node.key)}">`
    + `<rect class="box${node.isRegion ? ' region' : ''}" x="${left}" y="${top}" width="${width}" `
    + `height="${height + HEAD}" rx="6"/>`
    + `<rect class="head" x="${left}" y="${top}" width="${width}" height="${HEAD}"/>`
    + `<text class="title" x="${left + 24}" y="${top + 14}">${escaped(title)}</text>`
    + `${toggleOf(node.key, left + 4, top + 3, '−')}</g>`;
}

function leafText(leaf, coloring) {
  const { node, x, y, width, height, lines } = leaf;
  const rows = lines.map((line, k) => `<text class="${k ? 'names' : 'title'}" x="${width / 2}" `
    + `y="${16 + 14 * k}" text-anchor="middle">${escaped(line)}</text>`).join('');
  const toggle = node.children.length ? toggleOf(node.key, 3, 3, '+') : '';
  const badge = coloring.by === 'difference' && node.children.length && node.changes
    ? `<text x="${width - 4}" y="12" text-anchor="end">±${node.changes}</text>` : '';
  const radius = node.record?.kind === 'edge' ? height / 2 : 5;
  return `<g class="node" data-key="${escaped(node.key)}" `
    + `transform="translate(${x - width / 2},${y - height / 2})">`
    + `<rect width="${width}" height="${height}" rx="${radius}" `
    + `fill="${fillOf(node, coloring)}" stroke="#777"/>${rows}${toggle}${badge}</g>`;
}

// Edges from one node say what they carry where they begin, each of them once.
function edgesText(edges) {
  const told = new Map();
  return edges.map(({ from, to, labels, count, points }) => {
    const label = count > 1 && labels.size !== 1 ? `${count} tensors` : [...labels][0] || '';
    if (!told.has(from.key)) told.set(from.key, new Set());
    const before = told.get(from.key);
    const [{ x, y }] = points;
    const text = before.has(label) ? ''
      : `<text x="${x + 4}" y="${y + 11 + 10 * before.size}">${escaped(cut(label, 30))}</text>`;
    before.add(label);
    return `<g class="edge" data-from="${escaped(from.key)}" data-to="${escaped(to.key)}">`
      + `<path d="${pathOf(points)}" marker-end="url(#arrow)"/>${text}</g>`;
  }).join('');
}

const MARKER = '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
  + 'markerHeight="6" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>';

// The largest value of a leaf, for the scale of colors.
function coloringOf(layout, by, found) {
  const values = by === 'kind' || by === 'difference' ? [0] : layout.leaves.map((l) => l.node[by]);
  return { by, found, largest: Math.max(...values, 0) };
}

function svgText(layout, coloring) {
  // Outer boxes first, so that inner ones lie over them.
  return MARKER + layout.boxes.map((box) => boxText(box, coloring)).join('')
    + edgesText(layout.edges)
    + layout.leaves.map((leaf) => leafText(leaf, coloring)).join('');
}

function wrapped(inner, layout, style) {
  const size = `width="${Math.ceil(layout.width)}" height="${Math.ceil(layout.height)}"`;
  return `<!-- generated by lowerdeck --><svg xmlns="http://www.w3.org/2000/svg" ${size} `
    + `viewBox="0 ${-HEAD} ${layout.width} ${layout.height}"><style>${style}</style>${inner}</svg>\n`;
}

// The last stage as it opens.
function standaloneSvg(data, style) {
  const stage = data.stages[data.stages.length - 1];
  const times = data.kernels ? timesOf(data.records, stage, data.kernels) : null;
  const errors = data.errors ? errorsOf(data.records, stage, data.errors) : null;
  const tree = treeOf(data.records, stage, { times, errors });
  const layout = layoutOf(tree, firstOpen(tree.root));
  const by = (errors && 'error') || (times && 'time') || 'kind';
  return wrapped(svgText(layout, coloringOf(layout, by, null)), layout, style);
}
