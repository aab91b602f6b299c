import Bytes
import Fleece
import Storage

/// A point that a map function emits as a key, for `ViewQuery.boundingBox` (docs/view-geo-text.md).
///
/// ```swift
/// try view.setMap(version: "1") { document, emit in
///   if let x = document["lon"]?.double, let y = document["lat"]?.double { emit(GeoPoint(x: x, y: y)) }
/// }
/// ```
public struct GeoPoint: SpecialKey, Hashable {
  /// The longitude, or any other finite coordinate.
  public var x: Double
  /// The latitude, or any other finite coordinate.
  public var y: Double

  /// A point.
  public init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }

  /// What is indexed.
  public var specialKeyContent: SpecialKeyContent {
    SpecialKeyContent(.box(GeoRect(x0: x, y0: y, x1: x, y1: y), geoJSON: []))
  }
}

/// A box with sides along the axes: a key that a map function emits, and what `ViewQuery.boundingBox` asks for.
///
/// An emitted box can name any two opposite corners. Coordinates are plain numbers: a box doesn't go across the
/// antimeridian.
public struct GeoRect: SpecialKey, Hashable {
  /// The least x.
  public var x0: Double
  /// The least y.
  public var y0: Double
  /// The greatest x.
  public var x1: Double
  /// The greatest y.
  public var y1: Double

  /// A box.
  public init(x0: Double, y0: Double, x1: Double, y1: Double) {
    self.x0 = x0
    self.y0 = y0
    self.x1 = x1
    self.y1 = y1
  }

  /// What is indexed.
  public var specialKeyContent: SpecialKeyContent { SpecialKeyContent(.box(self, geoJSON: [])) }

  var isFinite: Bool { x0.isFinite && y0.isFinite && x1.isFinite && y1.isFinite }

  /// The same box with ordered corners and without negative zeros.
  var ordered: GeoRect {
    GeoRect(x0: min(x0, x1) + 0.0, y0: min(y0, y1) + 0.0, x1: max(x0, x1) + 0.0, y1: max(y0, y1) + 0.0)
  }

  /// Whether both have a common inner point. Boxes that only touch don't; a point within the other one does.
  func intersects(_ other: GeoRect) -> Bool {
    x0 < other.x1 && x1 > other.x0 && y0 < other.y1 && y1 > other.y0
  }

  /// Reads the box that a row keeps. Throws `damaged`.
  init(stored bytes: RawSpan) throws {
    guard bytes.byteCount >= 4 * MemoryLayout<Double>.size else { throw StoredRow.damaged }
    func coordinate(_ index: Int, _ bytes: RawSpan) -> Double {
      Double(
        bitPattern: UInt64(
          littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)))
    }
    x0 = coordinate(0, bytes)
    y0 = coordinate(1, bytes)
    x1 = coordinate(2, bytes)
    y1 = coordinate(3, bytes)
    guard isFinite, x0 <= x1, y0 <= y1 else { throw StoredRow.damaged }
  }

  /// The bytes of a box in a row. GeoJSON follows them, if it was emitted.
  static let storedBytes = 4 * MemoryLayout<Double>.size

  /// The box as a GeoJSON geometry: a point if it has no extent, otherwise a polygon.
  var geometry: JSONValue {
    func position(_ x: Double, _ y: Double) -> JSONValue { [.double(x), .double(y)] }
    if x0 == x1, y0 == y1 { return ["type": "Point", "coordinates": position(x0, y0)] }
    return [
      "type": "Polygon",
      "coordinates": [
        [position(x0, y0), position(x1, y0), position(x1, y1), position(x0, y1), position(x0, y0)]
      ],
    ]
  }
}

/// A GeoJSON object that a map function emits as a key: a geometry, a feature or a collection of them. The index has the
/// box around its coordinates; rows of a `ViewQuery.boundingBox` have the object itself.
public struct GeoJSON: SpecialKey, Hashable {
  private let value: JSONValue?

  /// A key of a GeoJSON object.
  public init(_ value: JSONValue) { self.value = value }

  /// A key of a GeoJSON object as text. If it can't be read, the emission is reported as a fault.
  public init(text: String) { value = try? JSONValue(json: text) }

  /// What is indexed.
  public var specialKeyContent: SpecialKeyContent {
    guard let value, case .object(let object) = value else {
      return SpecialKeyContent(.invalid("a GeoJSON key must be a JSON object"))
    }
    guard let box = GeoJSONBox(of: object).rect, let json = try? value.canonicalJSON() else {
      return SpecialKeyContent(
        .invalid("a GeoJSON key has no coordinates, or some that aren't finite numbers"))
    }
    return SpecialKeyContent(.box(box, geoJSON: Array(json.utf8)))
  }
}

/// The box around the coordinates of a GeoJSON object.
struct GeoJSONBox {
  private var box: GeoRect?
  private var isValid = true

  /// Nil if the object has no coordinates, or some that can't be read. Without coordinates, its `bbox` counts.
  var rect: GeoRect? { isValid ? box : nil }

  init(of object: JSONObject) {
    add(object)
    if box == nil, isValid, let corners = object["bbox"]?.array, corners.count == 4 || corners.count == 6 {
      let half = corners.count / 2
      add(position: [corners[0], corners[1]])
      add(position: [corners[half], corners[half + 1]])
    }
  }

  private mutating func add(_ object: JSONObject) {
    switch object["type"]?.string {
    case "Feature": if let geometry = object["geometry"]?.object { add(geometry) }
    case "FeatureCollection": for case .object(let part) in object["features"]?.array ?? [] { add(part) }
    case "GeometryCollection": for case .object(let part) in object["geometries"]?.array ?? [] { add(part) }
    default: if let coordinates = object["coordinates"] { add(coordinates: coordinates) }
    }
  }

  private mutating func add(coordinates: JSONValue) {
    guard case .array(let items) = coordinates else {
      isValid = false
      return
    }
    guard case .array? = items.first else {
      if !items.isEmpty { add(position: items) }
      return
    }
    for item in items { add(coordinates: item) }
  }

  private mutating func add(position: [JSONValue]) {
    guard position.count >= 2, let x = position[0].double, let y = position[1].double, x.isFinite, y.isFinite
    else {
      isValid = false
      return
    }
    guard let old = box else {
      box = GeoRect(x0: x, y0: y, x1: x, y1: y)
      return
    }
    box = GeoRect(x0: min(old.x0, x), y0: min(old.y0, y), x1: max(old.x1, x), y1: max(old.y1, y))
  }
}
