import Fleece

/// What a view's rows are reduced with, in a query over all of its rows or by groups.
///
/// ```swift
/// view.setReduce(.sum)
/// ```
///
/// The reducers of numbers take JSON numbers, and strings with the text of one. Another value makes the result an
/// error that names its document. Sums are exact: they are rounded once, at the end, so that they don't depend on
/// the order of rows. `docs/view-reductions.md` has the details.
public struct ViewReduce: Sendable {
  package let reducer: any Reducer

  package init(_ reducer: any Reducer) { self.reducer = reducer }

  /// The number of rows.
  public static let count = ViewReduce(CountReducer())
  /// The sum. It is an integer if all values are integers.
  public static let sum = ViewReduce(NumberReducer(kind: .sum))
  /// The least value.
  public static let min = ViewReduce(NumberReducer(kind: .min))
  /// The greatest value.
  public static let max = ViewReduce(NumberReducer(kind: .max))
  /// The sum divided by the number of rows.
  public static let average = ViewReduce(NumberReducer(kind: .average))
  /// The middle one of the sorted values, or the mean of the two in the middle.
  ///
  /// It reads all rows of the range or group. Their numbers may take 512 MiB of memory.
  public static let median = ViewReduce(MedianReducer())
  /// The standard deviation of a sample: the divisor is the number of rows less one. Null for one row.
  public static let standardDeviation = ViewReduce(NumberReducer(kind: .standardDeviation))
  /// An object with `count`, `sum`, `sumsqr` (the sum of the squares), `min` and `max`.
  public static let stats = ViewReduce(NumberReducer(kind: .stats))

  /// A function. It gets the keys and the values of rows in two arrays of equal length, and has to depend on
  /// them alone.
  ///
  /// `version` names the function. Its partial results are stored; a new version reduces all rows again.
  ///
  /// A function that can `rereduce` is also called with results of its own as `values`, no keys, and true. Then a
  /// query needs only few calls. One that can't is called once with all rows of the range or group; they may take
  /// 256 MiB of memory.
  ///
  /// An error that the function throws makes the result of the query an error, `ViewReduceError.Code.failed`.
  public static func function(
    version: String, rereduces: Bool = false,
    _ function:
      @escaping @Sendable (_ keys: [JSONValue], _ values: [JSONValue], _ rereduce: Bool) throws ->
      JSONValue
  ) -> ViewReduce {
    ViewReduce(
      FunctionReducer(
        identity: "function \(rereduces ? 2 : 1) \(version)", canRereduce: rereduces, keyForm: .key,
        maximumBytes: ViewReduce.maximumCallBytes
      ) { keys, values, rereduce in
        let keys = rereduce ? [] : try items(keys)
        return try Array(function(keys, try items(values), rereduce).canonicalJSON().utf8)
      })
  }

  /// A script: `function` gets the JSON of the arrays of `[key, document ID]` and of values, and returns JSON.
  package static func script(
    identity: String, rereduces: Bool = true,
    _ function: @escaping @Sendable (_ keys: [UInt8], _ values: [UInt8], _ rereduce: Bool) throws -> [UInt8]
  ) -> ViewReduce {
    ViewReduce(
      FunctionReducer(
        identity: "script \(identity)", canRereduce: rereduces, keyForm: .keyAndID,
        maximumBytes: ViewReduce.maximumCallBytes, function: function))
  }

  /// The built-in reducer of a design document: `_count`, `_sum`, `_stats`, `_approx_count_distinct`, `_first`, `_last`, `_top_N` or
  /// `_bottom_N` with N from 1 to 100. Nil for any other name.
  package static func builtIn(_ name: String) -> ViewReduce? {
    switch name {
    case "_count": ViewReduce(CountReducer())
    case "_sum": ViewReduce(StructuredSumReducer())
    case "_stats": ViewReduce(StructuredStatsReducer())
    case "_approx_count_distinct": ViewReduce(DistinctKeysReducer())
    case "_first": ViewReduce(PositionReducer(isFirst: true))
    case "_last": ViewReduce(PositionReducer(isFirst: false))
    default: RankReducer(name).map { ViewReduce($0) }
    }
  }

  private static let maximumCallBytes = 256 << 20

  private static func items(_ json: [UInt8]) throws -> [JSONValue] {
    guard case .array(let items) = try json.withUnsafeBytes({ try JSONValue(json: $0) }) else {
      throw ViewReduceError.damaged
    }
    return items
  }
}
