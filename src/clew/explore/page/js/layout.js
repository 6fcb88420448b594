/**
 * Where the nodes of a drawing stand: layers side by side, places below each other. It depends on
 * layer and place alone, so what was there stays where it is when something is added.
 *
 * On a narrow page layers go from top to bottom, each with up to three nodes in a line.
 */

const ACROSS = 44;
const DOWN = 16;
const SIZES = {
  row: [148, 38], group: [148, 38], step: [96, 30],
  source: [148, 52], sink: [148, 52], named: [132, 44],
};
const NARROW = { width: 104, columns: 3, down: 26 };

/** @returns {{width: number, height: number}} of a node */
export function size(node, narrow) {
  const [width, height] = SIZES[node.kind] ?? SIZES.step;
  return { width: narrow ? Math.min(width, NARROW.width) : width, height };
}

/**
 * @param {{key: string, kind: string, layer: number, place: number}[]} nodes
 * @param {boolean} narrow
 * @returns {Map<string, {x: number, y: number}>}
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
        x: column * (NARROW.width + 8), y: top + height / 2 + line * (height + 8),
      });
    });
    const lines = Math.ceil(layer.length / NARROW.columns);
    top += lines * (height + 8) + NARROW.down;
  }
  return found;
}
