// Queries that read every document of a type, without indexes: groups, joins, arrays, windows.
extension QueryCase {
  /// The queries that are compared with an analytical database over typed columns (docs/performance.md).
  static let analytical: [QueryCase] = [
    QueryCase(
      name: "analysis-1-types", summary: "documents by type",
      text: "SELECT type, COUNT(*) AS n FROM _ GROUP BY type",
      sql: "SELECT json_extract(body, '$.type') AS t, COUNT(*) FROM docs GROUP BY t"),
    QueryCase(
      name: "analysis-2-altitudes", summary: "average, least and greatest altitude of airports by country",
      text: """
        SELECT country, AVG(geo.alt) AS mean, MIN(geo.alt) AS least, MAX(geo.alt) AS most FROM _
        WHERE type = 'airport' GROUP BY country
        """,
      sql: """
        SELECT json_extract(body, '$.country') AS c, AVG(json_extract(body, '$.geo.alt')),
        MIN(json_extract(body, '$.geo.alt')), MAX(json_extract(body, '$.geo.alt')) FROM docs
        WHERE json_extract(body, '$.type') = 'airport' GROUP BY c
        """),
    QueryCase(
      name: "analysis-3-departures", summary: "the 20 airports with the most routes",
      text: """
        SELECT sourceairport, COUNT(*) AS n FROM _ WHERE type = 'route' GROUP BY sourceairport
        ORDER BY n DESC, sourceairport LIMIT 20
        """,
      sql: """
        SELECT json_extract(body, '$.sourceairport') AS s, COUNT(*) AS n FROM docs
        WHERE json_extract(body, '$.type') = 'route' GROUP BY s ORDER BY n DESC, s LIMIT 20
        """),
    QueryCase(
      name: "analysis-4-destinations", summary: "different destinations of each airline",
      text: """
        SELECT airline, COUNT(DISTINCT destinationairport) AS n FROM _ WHERE type = 'route' GROUP BY airline
        """,
      sql: """
        SELECT json_extract(body, '$.airline') AS a, COUNT(DISTINCT json_extract(body, '$.destinationairport'))
        FROM docs WHERE json_extract(body, '$.type') = 'route' GROUP BY a
        """),
    QueryCase(
      name: "analysis-5-distances", summary: "number, sum and average of the distances of all routes",
      text: """
        SELECT COUNT(*) AS n, SUM(distance) AS total, AVG(distance) AS mean, MIN(distance) AS least,
        MAX(distance) AS most FROM _ WHERE type = 'route'
        """,
      sql: """
        SELECT COUNT(*), SUM(json_extract(body, '$.distance')), AVG(json_extract(body, '$.distance')),
        MIN(json_extract(body, '$.distance')), MAX(json_extract(body, '$.distance')) FROM docs
        WHERE json_extract(body, '$.type') = 'route'
        """),
    QueryCase(
      name: "analysis-6-histogram", summary: "routes by 500 km of distance",
      text: """
        SELECT FLOOR(distance / 500) AS step, COUNT(*) AS n FROM _ WHERE type = 'route'
        GROUP BY FLOOR(distance / 500) ORDER BY step
        """,
      sql: """
        SELECT CAST(json_extract(body, '$.distance') / 500 AS INTEGER) AS step, COUNT(*) FROM docs
        WHERE json_extract(body, '$.type') = 'route' GROUP BY step ORDER BY step
        """),
    QueryCase(
      name: "analysis-7-countries", summary: "routes by the country of their airline, by a join",
      text: """
        SELECT a.country, COUNT(*) AS n FROM _ AS r JOIN _ AS a ON META(a).id = r.airlineid
        WHERE r.type = 'route' GROUP BY a.country
        """,
      sql: """
        SELECT json_extract(a.body, '$.country') AS c, COUNT(*) FROM docs r
        JOIN docs a ON a.id = json_extract(r.body, '$.airlineid')
        WHERE json_extract(r.body, '$.type') = 'route' GROUP BY c
        """),
    QueryCase(
      name: "analysis-8-pairs", summary: "different pairs of airports",
      text: """
        SELECT COUNT(*) AS n FROM (SELECT DISTINCT sourceairport, destinationairport FROM _ WHERE type = 'route') AS p
        """,
      sql: """
        SELECT COUNT(*) FROM (SELECT DISTINCT json_extract(body, '$.sourceairport'),
        json_extract(body, '$.destinationairport') FROM docs WHERE json_extract(body, '$.type') = 'route')
        """),
    QueryCase(
      name: "analysis-9-days", summary: "flights by day, from the arrays of all routes",
      text:
        "SELECT s.day, COUNT(*) AS n FROM _ AS r UNNEST r.schedule AS s WHERE r.type = 'route' GROUP BY s.day",
      sql: """
        SELECT json_extract(s.value, '$.day') AS d, COUNT(*) FROM docs r, json_each(r.body, '$.schedule') s
        WHERE json_extract(r.body, '$.type') = 'route' GROUP BY d
        """, repeats: (1, 1)),
    QueryCase(
      name: "analysis-10-reviews", summary: "average of the overall ratings of hotels by city",
      text: """
        SELECT h.city, AVG(v.ratings.Overall) AS mean, COUNT(*) AS n FROM _ AS h UNNEST h.reviews AS v
        WHERE h.type = 'hotel' GROUP BY h.city HAVING COUNT(*) > 5
        """,
      sql: """
        SELECT json_extract(h.body, '$.city') AS c, AVG(json_extract(v.value, '$.ratings.Overall')), COUNT(*)
        FROM docs h, json_each(h.body, '$.reviews') v
        WHERE json_extract(h.body, '$.type') = 'hotel' GROUP BY c HAVING COUNT(*) > 5
        """),
    QueryCase(
      name: "analysis-11-highest", summary: "the highest three airports of each country, by a window",
      text: """
        SELECT t.country, t.name FROM (SELECT country, airportname AS name,
        ROW_NUMBER() OVER (PARTITION BY country ORDER BY geo.alt DESC, airportname) AS place FROM _
        WHERE type = 'airport') AS t WHERE t.place <= 3
        """,
      sql: """
        SELECT c, n FROM (SELECT json_extract(body, '$.country') AS c, json_extract(body, '$.airportname') AS n,
        ROW_NUMBER() OVER (PARTITION BY json_extract(body, '$.country') ORDER BY json_extract(body, '$.geo.alt')
        DESC, json_extract(body, '$.airportname')) AS place FROM docs
        WHERE json_extract(body, '$.type') = 'airport') WHERE place <= 3
        """),
    QueryCase(
      name: "analysis-12-moving",
      summary: "the moving average of 1,001 distances, in the order of distance and ID",
      text: """
        SELECT SUM(distance) OVER (ORDER BY distance, META().id ROWS BETWEEN 500 PRECEDING AND 500 FOLLOWING) AS s
        FROM _ WHERE type = 'route'
        """,
      sql: """
        SELECT SUM(json_extract(body, '$.distance')) OVER (ORDER BY json_extract(body, '$.distance'), id
        ROWS BETWEEN 500 PRECEDING AND 500 FOLLOWING) FROM docs WHERE json_extract(body, '$.type') = 'route'
        """, repeats: (1, 1)),
  ]
}
