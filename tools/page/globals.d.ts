/** What the page's other scripts put in place. */

/** Vendored; its own types are not. */
declare var cytoscape: any;
