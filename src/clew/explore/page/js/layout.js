/**
 * Where the nodes of a drawing stand: layers side by side, places below each other. It depends on
 * layer and place alone, so what was there stays where it is when something is added.
 *
 * On a narrow page layers go from top to bottom, each with up to three nodes in a line.
 */

const ACROSS = 36;
const DOWN = 14;
const SIZES = {
  row: [146, 40], group: [146, 32], step: [86, 28],
  source: [146, 50], sink: [146, 50], named: [130, 44],
};
const NARROW = { width: 108, columns: 3, down: 16, beside: 8 };

/** @typedef {{x: number, y: number}} Place */

/** @returns {{width: number, height: number}} of a node */
export function size(node, narrow) {
  const [width, height] = SIZES[node.kind] ?? SIZES.step;
  return { width: narrow ? Math.min(width, NARROW.width) : width, height };
}

/**
 * @param {{key: string, kind: string, layer: number, place: number}[]} nodes
 * @param {boolean} narrow
 * @returns {Map<string, Place>}
 */
export function positions(nodes, narrow) {
  return narrow ? stacked(layersOf(nodes)) : sideBySide(layersOf(nodes));
}

function layersOf(nodes) {
  const layers = new Map();
  for (const node of nodes) {
    if (!layers.has(node.layer)) layers.set(node.layer, []);
    layers.get(node.layer).push(node);
  }
  return [...layers].sort(([a], [b]) => a - b)
    .map(([, layer]) => layer.sort((a, b) => a.place - b.place));
}

function sideBySide(layers) {
  const found = new Map();
  let left = 0;
  for (const layer of layers) {
    const sizes = layer.map((node) => size(node, false));
    const width = Math.max(...sizes.map((each) => each.width));
    const height = sizes.reduce((sum, each) => sum + each.height + DOWN, -DOWN);
    let top = -height / 2;
    layer.forEach((node, i) => {
      found.set(node.key, { x: left + width / 2, y: top + sizes[i].height / 2 });
      top += sizes[i].height + DOWN;
    });
    left += width + ACROSS;
  }
  return found;
}

function stacked(layers) {
  const found = new Map();
  let top = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((node) => size(node, true).height));
    layer.forEach((node, i) => {
      const line = Math.floor(i / NARROW.columns);
      const inLine = Math.min(NARROW.columns, layer.length - line * NARROW.columns);
      const column = (i % NARROW.columns) - (inLine - 1) / 2;
      found.set(node.key, {
        x: column * (NARROW.width + NARROW.beside),
        y: top + height / 2 + line * (height + NARROW.beside),
      });
    });
    const lines = Math.ceil(layer.length / NARROW.columns);
    top += lines * (height + NARROW.beside) + NARROW.down;
  }
  return found;
}

/**
 * The names of streams above their layers; on a narrow page there is no room for them.
 * @param {any[]} nodes
 * @param {Map<string, Place>} where of each node
 * @param {boolean} narrow
 * @returns {{key: string, text: string, x: number, y: number}[]}
 */
export function captions(nodes, where, narrow) {
  if (narrow) return [];
  return layersOf(nodes).flatMap((layer) => {
    const rows = layer.filter((node) => ["row", "group"].includes(node.kind));
    const streams = new Set(rows.map((node) => node.stream));
    if (streams.size !== 1) return [];
    const at = (node) => /** @type {Place} */ (where.get(node.key));
    const top = Math.min(...layer.map((node) => at(node).y - size(node, false).height / 2));
    const [stream] = streams;
    return [{ key: `caption:${layer[0].layer}`, text: stream, x: at(rows[0]).x, y: top - 16 }];
  });
}
