"""From annotations to edges, outside the query that carried them."""
