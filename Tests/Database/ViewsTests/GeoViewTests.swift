import Bytes
import Fleece
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Places as keys of views, and queries of a bounding box.
@Suite("Views of places") struct GeoViewTests {
  private let databases = TestDatabases()

  private func ids(_ view: View, _ area: GeoRect, _ change: (inout ViewQuery) -> Void = { _ in }) throws
    -> [String]
  {
    var query = view.query()
    query.boundingBox = area
    change(&query)
    return try query.run().map { $0.documentID ?? "-" }
  }

  @Test("rows have the box and the geometry that were emitted", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("point", ["at": [-122.68, 45.52], "name": "Portland"])
    try database.save("rect", ["box": [-115, -10, -90, 12]])
    try database.save("swapped", ["box": [3, 4, -3, -4]])
    try database.save(
      "shape",
      [
        "geometry": ["type": "LineString", "coordinates": [[10, 50], [11, 52.5], [9.5, 51]]], "name": "line",
      ])
    try database.save("nan", ["at": [1, "x"]])
    try database.save("none", ["geometry": ["type": "Point"]])
    let view = try database.view("places")
    try view.setMap(version: "1") { document, emit in
      let properties = try document.properties()
      if let at = properties["at"]?.array {
        emit(GeoPoint(x: at[0].double ?? .nan, y: at[1].double ?? .nan), document["name"])
      }
      if let box = properties["box"]?.array?.compactMap(\.double) {
        emit(GeoRect(x0: box[0], y0: box[1], x1: box[2], y1: box[3]), document)
      }
      if let geometry = properties["geometry"] { emit(GeoJSON(geometry), "shape") }
    }
    var query = view.query()
    query.boundingBox = GeoRect(x0: -180, y0: -90, x1: 180, y1: 90)
    let rows = try query.run()
    expect(rows.map(\.documentID), equals: ["rect", "swapped", "point", "shape"])
    expect(rows.allSatisfy { $0.keyJSON == "null" })
    expect(rows[0].boundingBox, equals: GeoRect(x0: -115, y0: -10, x1: -90, y1: 12))
    try expect(
      rows[0].geometry,
      equals: (try JSONValue(
        json:
          #"{"type":"Polygon","coordinates":[[[-115.0,-10.0],[-90.0,-10.0],[-90.0,12.0],[-115.0,12.0],[-115.0,-10.0]]]}"#
      )))
    expect(rows[0].value["_id"]?.string, equals: "rect")
    expect(rows[1].boundingBox, equals: GeoRect(x0: -3, y0: -4, x1: 3, y1: 4))
    expect(rows[2].geometry, equals: ["type": "Point", "coordinates": [-122.68, 45.52]])
    expect(rows[2].value, equals: "Portland")
    expect(rows[3].boundingBox, equals: GeoRect(x0: 9.5, y0: 50, x1: 11, y1: 52.5))
    expect(rows[3].geometry?["type"]?.string, equals: "LineString")
    expect(rows[3].value, equals: "shape")
    expect(Set(view.lastUpdate.faults.map(\.documentID)), equals: ["nan", "none"])
    // The rows are rows of the view, too.
    let all = try view.query().run()
    expect(all.count == 4 && all.allSatisfy { $0.boundingBox == nil && $0.geometry == nil })
    try expect(database.check(), equals: [])
  }

  @Test("boxes that only touch the area aren't found", arguments: someEngines)
  func edges(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let boxes: [(String, [JSONValue])] = [
      ("inside", [1, 1, 2, 2]), ("touches left", [-5, 1, 0, 2]), ("touches corner", [10, 10, 12, 12]),
      ("over", [-100, -100, 100, 100]), ("point inside", [5, 5, 5, 5]), ("point on the edge", [0, 5, 0, 5]),
      ("crosses", [9, 9, 11, 11]), ("outside", [20, 20, 21, 21]), ("huge", [-1e300, -1e300, 1e300, 1e300]),
      ("tiny", [1e-300, 1e-300, 2e-300, 2e-300]), ("negative zero", [-0.0, 3, 0.5, 4]),
    ]
    for (id, box) in boxes { try database.save(id, ["box": .array(box)]) }
    let view = try database.view("boxes")
    try view.setMap(version: "1") { document, emit in
      let box = try document.properties()["box"]?.array?.compactMap(\.double) ?? []
      emit(GeoRect(x0: box[0], y0: box[1], x1: box[2], y1: box[3]))
    }
    let found = ["huge", "over", "tiny", "inside", "negative zero", "point inside", "crosses"]
    let area = GeoRect(x0: 0, y0: 0, x1: 10, y1: 10)
    try expect(ids(view, area), equals: found)
    try expect(ids(view, area) { $0.isDescending = true }, equals: found.reversed())
    try expect(ids(view, area) { ($0.skip, $0.limit) = (2, 3) }, equals: Array(found[2..<5]))
    try expect(
      ids(view, area) { ($0.isDescending, $0.limit) = (true, 2) }, equals: Array(found.reversed()[..<2]))
    try expect(
      ids(view, area) { $0.filter = { $0.documentID != "tiny" } }, equals: found.filter { $0 != "tiny" })
    try expect(ids(view, area) { $0.sort = [ViewSort("documentID")] }, equals: found.sorted())
    // An area without extent is a point: boxes around it have it inside.
    try expect(ids(view, GeoRect(x0: 1.5, y0: 1.5, x1: 1.5, y1: 1.5)), equals: ["huge", "over", "inside"])
    try expect(ids(view, GeoRect(x0: 5, y0: 5, x1: 5, y1: 5)), equals: ["huge", "over"])
    let everything = GeoRect(x0: -.infinity, y0: -.infinity, x1: .infinity, y1: .infinity)
    try expect(ids(view, everything).count, equals: boxes.count)
    for wrong in [GeoRect(x0: 1, y0: 0, x1: 0, y1: 1), GeoRect(x0: .nan, y0: 0, x1: 0, y1: 1)] {
      let error = #expect(throws: ViewError.self) { try ids(view, wrong) }
      expect(error?.code, equals: .invalidArgument)
    }
    // Keys and their bounds aren't used.
    try expect(ids(view, area) { ($0.startKey, $0.keys) = ("x", ["y"]) }, equals: found)
    view.setReduce(.count)
    var query = view.query()
    query.boundingBox = area
    try expect(query.run().map(\.valueJSON), equals: ["\(found.count)"])
    query.boundingBox = GeoRect(x0: 1000, y0: 1000, x1: 1001, y1: 1001)
    try expect(query.run().map(\.valueJSON), equals: ["1"])
    query.memoryLimit = 50
    query.boundingBox = area
    let error = #expect(throws: ViewError.self) { try query.run() }
    expect(error?.code, equals: .tooManyRows)
  }

  /// Boxes by row, as a list.
  private struct Model {
    var boxes: [String: [GeoRect]] = [:]

    func found(_ area: GeoRect) -> [String] {
      var rows: [(rect: GeoRect, id: String, emission: Int)] = []
      for (id, boxes) in boxes {
        for (emission, rect) in boxes.enumerated() where rect.intersects(area) {
          rows.append((rect, id, emission))
        }
      }
      rows.sort {
        ($0.rect.y0, $0.rect.x0, $0.id, $0.emission) < ($1.rect.y0, $1.rect.x0, $1.id, $1.emission)
      }
      return rows.map(\.id)
    }
  }

  private func coordinate(_ random: inout SeededGenerator) -> Double {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: Double(Int.random(in: -3...3, using: &random))
    case 1: Double.random(in: -1e-6...1e-6, using: &random)
    case 2: Double.random(in: -1e12...1e12, using: &random)
    case 3:
      [-0.0, 0, 180, -180, .greatestFiniteMagnitude, -.leastNonzeroMagnitude].randomElement(using: &random)
        ?? 0
    default: Double.random(in: -180...180, using: &random)
    }
  }

  private func box(_ random: inout SeededGenerator) -> GeoRect {
    let (x, y) = (coordinate(&random), coordinate(&random))
    let rect =
      switch Int.random(in: 0..<4, using: &random) {
      case 0: GeoRect(x0: x, y0: y, x1: x, y1: y)
      case 1: GeoRect(x0: x, y0: y, x1: coordinate(&random), y1: coordinate(&random))
      default:
        GeoRect(
          x0: x, y0: y, x1: x + Double.random(in: 0...2, using: &random),
          y1: y + Double.random(in: 0...2, using: &random))
      }
    return rect.isFinite ? rect.ordered : GeoRect(x0: 0, y0: 0, x1: 1, y1: 1)
  }

  private func json(_ boxes: [GeoRect]) -> JSONValue {
    .array(boxes.map { .array([.double($0.x0), .double($0.y0), .double($0.x1), .double($0.y1)]) })
  }

  @Test("random boxes, changes and areas give what a list of boxes gives", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let database = try databases.open(engine)
    let view = try database.view("boxes")
    func setMap(_ version: String) throws {
      try view.setMap(version: version) { document, emit in
        for item in try document.properties()["boxes"]?.array ?? [] {
          let box = item.array?.compactMap(\.double) ?? []
          emit(GeoRect(x0: box[0], y0: box[1], x1: box[2], y1: box[3]))
        }
      }
    }
    try setMap("0")
    var model = Model()
    for step in 0..<12 {
      try database.inBatch {
        for _ in 0..<(step == 0 ? 400 : 60) {
          // A long ID makes keys that an engine can't have.
          let number = Int.random(in: 0..<500, using: &random)
          let id = number % 50 == 0 ? String(repeating: "é", count: 115) + "\(number)" : "d\(number)"
          switch Int.random(in: 0..<6, using: &random) {
          case 0 where model.boxes[id] != nil:
            if Bool.random(using: &random) { try database.delete(id) } else { try database.purge(id) }
            model.boxes[id] = nil
          default:
            let boxes = (0..<Int.random(in: 0...3, using: &random)).map { _ in box(&random) }
            try database.save(id, ["boxes": json(boxes)])
            model.boxes[id] = boxes
          }
        }
      }
      if step == 6 { try setMap("1") }
      if step == 9 { view.indexes.memoryLimit.withLock { $0 = 4_000 } }
      if step == 10 { try view.deleteIndex() }
      for _ in 0..<25 {
        let area = box(&random)
        let wanted = model.found(area)
        let (limit, skip) = (Int.random(in: 0...20, using: &random), Int.random(in: 0...10, using: &random))
        try expect(ids(view, area), equals: wanted, "\(area), step \(step) (seed \(testSeed))")
        let part = Array(wanted.dropFirst(skip).prefix(limit == 0 ? .max : limit))
        try expect(
          ids(view, area) { ($0.skip, $0.limit) = (skip, limit) }, equals: part, "\(area) (seed \(testSeed))")
      }
      try expect(database.check(), equals: [], "step \(step) (seed \(testSeed))")
    }
    try view.delete()
    let names = try view.indexes.store.read {
      try $0.storage.keyspaces().keys.filter { $0.hasPrefix("view.") }
    }
    expect(names.isEmpty)
  }

  @Test("a damaged index of boxes is found by check")
  func check() throws {
    let database = try databases.open(try #require(someEngines.first))
    try database.save("a", ["x": 1])
    try database.save("b", ["x": 2])
    let view = try database.view("points")
    try view.setMap(version: "1") { document, emit in emit(GeoPoint(x: document["x"]?.double ?? 0, y: 0)) }
    try view.updateIndex()
    try expect(database.check(), equals: [])
    try view.indexes.store.writingDerived { transaction in
      let keyspace = try #require(try transaction.keyspace(named: "view.1.boxes"))
      var first: [UInt8] = []
      try transaction.scan(keyspace, .all, order: .ascending) { key, _ in
        first = [UInt8](copying: key)
        return false
      }
      try transaction.delete(first.span.bytes, in: keyspace)
    }
    let faults = try database.check().map(\.description)
    expect(faults.count == 2 && faults.allSatisfy { $0.contains("index of boxes") }, "\(faults)")
  }

  @Test("places on the curve are in order, and the next place in a box is the next one")
  func curve() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<20_000 {
      let (a, b) = (coordinate(&random), coordinate(&random))
      if a <= b { expect(GeoCurve.coordinate(a) <= GeoCurve.coordinate(b), "\(a) \(b)") }
      let (x, y) = (
        UInt32.random(in: 0...(.max), using: &random), UInt32.random(in: 0...(.max), using: &random)
      )
      let back = GeoCurve.coordinates(of: GeoCurve.place(x, y))
      expect(back.x == x && back.y == y)
    }
    expect(GeoCurve.coordinate(0), equals: GeoCurve.coordinate(-0.0))
    expect(GeoCurve.coordinate(.infinity) == .max && GeoCurve.coordinate(-.infinity) == 0)
    for _ in 0..<300 {
      func corner() -> (UInt32, UInt32) {
        (UInt32.random(in: 0..<16, using: &random), UInt32.random(in: 0..<16, using: &random))
      }
      let (a, b) = (corner(), corner())
      let lower = GeoCurve.place(min(a.0, b.0), min(a.1, b.1))
      let upper = GeoCurve.place(max(a.0, b.0), max(a.1, b.1))
      for place in lower...upper {
        let wanted = (place...upper).first { place in
          let (x, y) = GeoCurve.coordinates(of: place)
          return x >= min(a.0, b.0) && x <= max(a.0, b.0) && y >= min(a.1, b.1) && y <= max(a.1, b.1)
        }
        expect(GeoCurve.next(from: place, lower: lower, upper: upper), equals: wanted)
      }
    }
  }

  @Test("GeoJSON objects of all types have the box around their coordinates")
  func geoJSON() throws {
    func box(_ json: String) throws -> GeoRect? {
      GeoJSONBox(of: try #require(try JSONValue(json: json).object)).rect
    }
    let wanted = GeoRect(x0: -1, y0: 2, x1: 5, y1: 7.5)
    for text in [
      #"{"type":"MultiPoint","coordinates":[[-1,2],[5,7.5]]}"#,
      #"{"type":"LineString","coordinates":[[5,2,100],[-1,7.5,200]]}"#,
      #"{"type":"Polygon","coordinates":[[[-1,2],[5,2],[5,7.5],[-1,7.5],[-1,2]],[[0,3],[1,3],[1,4],[0,3]]]}"#,
      #"{"type":"MultiPolygon","coordinates":[[[[-1,2],[0,2],[0,3],[-1,2]]],[[[5,7.5],[4,7],[5,7],[5,7.5]]]]}"#,
      #"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[-1,2]},{"type":"Point","coordinates":[5,7.5]}]}"#,
      #"{"type":"Feature","properties":{"coordinates":[99,99]},"geometry":{"type":"LineString","coordinates":[[-1,7.5],[5,2]]}}"#,
      #"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[-1,2]}},{"type":"Feature","geometry":{"type":"Point","coordinates":[5,7.5]}}]}"#,
      #"{"type":"Feature","geometry":null,"bbox":[-1,2,5,7.5]}"#,
      #"{"type":"Feature","geometry":null,"bbox":[-1,2,0,5,7.5,9]}"#,
    ] { try expect(box(text), equals: wanted, "\(text)") }
    for text in [
      #"{"type":"Point"}"#, #"{"type":"Point","coordinates":[]}"#, #"{"type":"Point","coordinates":[1]}"#,
      #"{"type":"Point","coordinates":["1","2"]}"#, #"{"type":"LineString","coordinates":[[1,2],3]}"#,
      #"{"type":"Point","coordinates":7}"#, #"{}"#,
    ] { try expect(box(text) == nil, "\(text)") }
    var bytes: [UInt8] = []
    for key in [GeoJSON(text: "{"), GeoJSON(text: "7"), GeoJSON("text"), GeoJSON(text: #"{"type":"Point"}"#)]
    {
      #expect(throws: ViewError.self) { try key.specialKeyContent.write(to: &bytes) }
    }
    try expect(GeoJSON(text: #"{"coordinates":[1,2]}"#).specialKeyContent.write(to: &bytes), equals: .box)
    expect(bytes.count, equals: GeoRect.storedBytes + #"{"coordinates":[1,2]}"#.utf8.count)
  }
}
