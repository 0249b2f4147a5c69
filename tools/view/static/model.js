// What is shown: the tree of scopes and regions of a stage, which nodes of it are visible, the
// edges between these, and what is different from another stage. Nothing here needs a browser.
'use strict';

// Children of a box: more are put in boxes of their own, in the order of the program.
const MAX_CHILDREN = 48;
// Visible nodes of a picture that opens by itself.
const FIRST_VISIBLE = 60;
// Visible nodes that are laid out at most.
const MAX_VISIBLE = 600;

// The parts of the scope that all source nodes of an op have in common.
function scopeOf(record) {
  const scopes = record.names.map((name) => name.split('/').filter(Boolean).slice(0, -1));
  if (!scopes.length) return null;
  let common = scopes[0];
  for (const other of scopes) {
    let k = 0;
    while (k < common.length && k < other.length && common[k] === other[k]) k += 1;
    common = common.slice(0, k);
  }
  return common;
}

function newNode(key, title, parent, record) {
  return { key, title, parent, record, children: [], isRegion: false, flops: 0, bytes: 0, time: 0, error: 0,
    params: 0, ops: 0, changes: 0 };
}

// The tree of a stage: leaves are ops, inner nodes regions, scopes, or runs of ops.
function treeOf(records, stage, { constants = false, times = null, errors = null } = {}) {
  const root = newNode('', '', null, null);
  const byId = new Map();
  const scopes = new Map();
  const list = stage.ops.map((position) => records[position]);
  const withRegion = new Set(list.map((record) => record.parent));

  // Ops without source nodes are where the op before them is.
  let last = { parent: -1, scope: [] };
  for (const record of list) {
    if (record.kind === 'constant' && !constants) continue;
    let scope = scopeOf(record);
    if (scope === null) scope = last.parent === record.parent ? last.scope : [];
    last = { parent: record.parent, scope };
    let place = record.parent >= 0 ? byId.get(record.parent) : root;
    if (place === undefined) continue;
    for (const part of record.kind === 'edge' ? [] : scope) {
      const key = `${place.key}/${part}`;
      if (!scopes.has(key)) {
        const box = newNode(key, part, place, null);
        place.children.push(box);
        scopes.set(key, box);
      }
      place = scopes.get(key);
    }
    const node = newNode(`#${record.id}`, record.title, place, record);
    place.children.push(node);
    byId.set(record.id, node);
    if (withRegion.has(record.id)) {
      node.isRegion = true;
      // What goes into the op goes here while its box is open.
      if (record.in.length) {
        const head = newNode(`#${record.id}:in`, record.title, node, record);
        head.isHead = true;
        node.children.push(head);
      }
    }
  }
  // What ends the regions of an op, which is where its results come from.
  const ends = new Map();
  for (const record of list) {
    if (record.kind !== 'edge' || record.op === 'arguments' || !byId.has(record.id)) continue;
    if (!ends.has(record.parent)) ends.set(record.parent, []);
    ends.get(record.parent).push(byId.get(record.id));
  }
  shorten(root);
  split(root);
  count(root, times, errors, constants ? new Map() : parametersOf(list));
  return { root, byId, list, ends };
}

// A box with one box in it, and nothing else, is one box.
function shorten(node) {
  for (const child of node.children) {
    while (!child.record && child.children.length === 1 && !child.children[0].record) {
      const [only] = child.children;
      child.title += `/${only.title}`;
      child.children = only.children;
      for (const below of child.children) below.parent = child;
    }
    shorten(child);
  }
  node.children = node.children.map((child) => {
    if (child.record || child.children.length !== 1) return child;
    child.children[0].parent = node;
    return child.children[0];
  });
}

function split(node) {
  while (node.children.length > MAX_CHILDREN) {
    const boxes = [];
    const size = Math.ceil(node.children.length / Math.ceil(node.children.length / MAX_CHILDREN));
    for (let k = 0; k < node.children.length; k += size) {
      const part = node.children.slice(k, k + size);
      const title = `${k + 1} to ${k + part.length} of ${node.children.length}`;
      const box = newNode(`${node.key}~${part[0].key}`, title, node, null);
      box.children = part;
      for (const child of part) child.parent = box;
      boxes.push(box);
    }
    node.children = boxes;
  }
  for (const child of node.children) split(child);
}

// The parameters of constants that are not shown count for the first op that uses each.
function parametersOf(list) {
  const free = new Map(list.filter((r) => r.kind === 'constant').map((r) => [r.id, r.params || 0]));
  const found = new Map();
  for (const record of list) {
    for (const [id] of record.in) {
      found.set(record.id, (found.get(record.id) || 0) + (free.get(id) || 0));
      free.delete(id);
    }
  }
  return found;
}

function count(node, times, errors, params) {
  if (node.record && !node.isHead) {
    node.ops = 1;
    for (const key of ['flops', 'bytes', 'params']) node[key] = node.record[key] || 0;
    node.params += params.get(node.record.id) || 0;
    node.time = times ? times.get(node.record.id) || 0 : 0;
    node.error = errors ? errors.get(node.record.id) || 0 : 0;
  }
  for (const child of node.children) {
    count(child, times, errors, params);
    node.error = Math.max(node.error, child.error);
    for (const key of ['flops', 'bytes', 'params', 'time', 'ops']) node[key] += child[key];
  }
}

// Which boxes are open at first: those near the root, as long as there are few nodes.
function firstOpen(root) {
  const open = new Set(['']);
  let visible = root.children.length;
  const queue = [...root.children];
  while (queue.length) {
    const node = queue.shift();
    if (!node.children.length) continue;
    const isTop = node.isRegion && node.parent === root;
    if (!isTop && visible + node.children.length > FIRST_VISIBLE) continue;
    open.add(node.key);
    visible += node.children.length - 1;
    queue.push(...node.children);
  }
  return open;
}

// The visible leaves and boxes, and the edges between leaves.
function visibleOf(tree, open) {
  const leaves = [];
  const boxes = [];
  const seenAs = new Map(); // node -> the visible leaf that stands for it
  (function visit(node, leaf) {
    let own = leaf;
    if (leaf === null && node !== tree.root) {
      const isOpen = node.children.length > 0 && open.has(node.key);
      if (isOpen) boxes.push(node);
      else { leaves.push(node); own = node; }
    }
    seenAs.set(node, own);
    for (const child of node.children) visit(child, own);
  })(tree.root, null);

  // An open region takes values at its head, and gives those that end it.
  const into = (node) => seenAs.get(node) || (node.isRegion && node.children[0]?.isHead
    ? seenAs.get(node.children[0]) : null);
  const outOf = (node) => {
    if (seenAs.get(node)) return [seenAs.get(node)];
    return (tree.ends.get(node.record.id) || []).map((end) => seenAs.get(end));
  };

  const edges = new Map();
  const add = (from, to, label) => {
    if (!from || !to || from === to) return;
    const key = `${from.key} ${to.key}`;
    const edge = edges.get(key) || { from, to, labels: new Set(), count: 0 };
    edge.count += 1;
    if (label) edge.labels.add(label);
    edges.set(key, edge);
  };
  for (const record of tree.list) {
    const node = tree.byId.get(record.id);
    if (!node) continue;
    for (const [id, index] of record.in) {
      const source = tree.byId.get(id);
      if (!source) continue;
      for (const from of outOf(source)) add(from, into(node), source.record.types[index]);
    }
    // The arguments of a region get their values from its head.
    if (record.op === 'arguments' && node.parent) {
      let region = node.parent;
      while (region && !region.isRegion) region = region.parent;
      const head = region?.children.find((child) => child.isHead);
      if (head) add(seenAs.get(head), seenAs.get(node), '');
    }
  }
  return { leaves, boxes, edges: [...edges.values()] };
}

// Differences between stages, by the number of ops: what is new, gone, or changed in itself.
function differences(records, before, after) {
  const mine = new Map(before.ops.map((position) => [records[position].id, records[position]]));
  const theirs = new Map(after.ops.map((position) => [records[position].id, records[position]]));
  const own = (record) => JSON.stringify({ ...record, in: 0, parent: 0, names: 0 });
  const found = new Map();
  for (const [id, record] of theirs) {
    const was = mine.get(id);
    if (!was) found.set(id, { status: 'added', record });
    else if (was !== record && own(was) !== own(record)) {
      found.set(id, { status: 'changed', record, was });
    }
  }
  for (const [id, record] of mine) {
    if (!theirs.has(id)) found.set(id, { status: 'removed', record });
  }
  // Provenance: what is new comes from what is gone and has a source node in common with it.
  const goneOf = new Map();
  for (const [, { status, record }] of found) {
    if (status !== 'removed') continue;
    for (const name of record.names) {
      if (!goneOf.has(name)) goneOf.set(name, []);
      goneOf.get(name).push(record);
    }
  }
  for (const [, entry] of found) {
    if (entry.status !== 'added') continue;
    entry.from = [...new Set(entry.record.names.flatMap((name) => goneOf.get(name) || []))];
    for (const gone of entry.from) {
      const other = found.get(gone.id);
      (other.to = other.to || []).push(entry.record);
    }
  }
  return found;
}

function markChanges(tree, found) {
  for (const [id] of found) {
    for (let node = tree.byId.get(id); node; node = node.parent) node.changes += 1;
  }
}

// The time of each op: that of a kernel is shared by the ops with its source nodes, by their FLOPs.
function timesOf(records, stage, kernels) {
  const byName = new Map();
  for (const position of stage.ops) {
    const record = records[position];
    if (record.kind === 'constant' || record.kind === 'edge' || record.kind === 'region') continue;
    for (const name of record.names) {
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push(record);
    }
  }
  const times = new Map();
  for (const kernel of kernels) {
    const own = [...new Set(kernel.nodes.flatMap((name) => byName.get(name) || []))];
    const total = own.reduce((sum, record) => sum + (record.flops || 0) + 1, 0);
    for (const record of own) {
      const share = kernel.seconds * ((record.flops || 0) + 1) / total;
      times.set(record.id, (times.get(record.id) || 0) + share);
    }
  }
  return times;
}

// The error of each op: the largest of the values that come from its source nodes.
function errorsOf(records, stage, errors) {
  const byName = new Map();
  for (const { nodes, error } of errors) {
    for (const name of nodes) byName.set(name, Math.max(byName.get(name) || 0, error));
  }
  const found = new Map();
  for (const position of stage.ops) {
    const record = records[position];
    if (record.kind === 'constant' || record.kind === 'edge') continue;
    const own = record.names.filter((name) => byName.has(name)).map((name) => byName.get(name));
    if (own.length) found.set(record.id, Math.max(...own));
  }
  return found;
}

function matches(tree, text) {
  const wanted = text.toLowerCase();
  const found = [];
  for (const record of tree.list) {
    const node = tree.byId.get(record.id);
    if (!node) continue;
    const words = [record.op, record.title, ...record.names, ...record.types,
      ...Object.entries(record.attrs).map(([name, value]) => `${name}=${value}`)];
    if (words.some((word) => word.toLowerCase().includes(wanted))) found.push(node);
  }
  return found;
}
