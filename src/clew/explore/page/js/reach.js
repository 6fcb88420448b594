/**
 * Which nodes of a drawing belong to one of them.
 *
 * Rows follow the true edges between rows, since a step is shared by rows that have nothing to do
 * with each other; steps follow the links they stand on.
 */

/**
 * @param {{nodes: {key: string, kind: string}[], links: {source: string, target: string}[],
 *          edges?: [string, string][]}} drawing an edge is a result's key and a source's key
 * @param {string} key
 * @returns {Set<string>} with the key itself
 */
export function related(drawing, key) {
  const links = drawing.links.map(({ source, target }) => [target, source]);
  const along = closure(links, key);
  const kinds = new Map(drawing.nodes.map((node) => [node.key, node.kind]));
  const isRow = (each) => ["row", "group"].includes(kinds.get(each) ?? "");
  if (!drawing.edges?.length || !isRow(key)) return along;
  const rows = closure(drawing.edges, key);
  for (const each of along) if (!isRow(each)) rows.add(each);
  return rows;
}

/**
 * The node that stands for a row: its own, or the group of its stream if there is just one.
 * @returns {string|undefined}
 */
export function drawnAs({ nodes }, key) {
  if (nodes.some((node) => node.key === key)) return key;
  const stream = key.slice("row:".length, key.lastIndexOf("/"));
  const groups = nodes.filter((node) => node.kind === "group" && node.stream === stream);
  return groups.length === 1 ? groups[0].key : undefined;
}

/**
 * All that can be reached from a key along pairs, forwards, and all from which it can be.
 * @param {string[][]} pairs
 * @param {string} key
 */
function closure(pairs, key) {
  const forwards = neighbours(pairs, 0, 1);
  const backwards = neighbours(pairs, 1, 0);
  return new Set([...walk(forwards, key), ...walk(backwards, key)]);
}

function neighbours(pairs, from, to) {
  const found = new Map();
  for (const pair of pairs) {
    if (!found.has(pair[from])) found.set(pair[from], []);
    found.get(pair[from]).push(pair[to]);
  }
  return found;
}

function walk(next, key) {
  const seen = new Set([key]);
  for (const each of seen) for (const other of next.get(each) ?? []) seen.add(other);
  return seen;
}
