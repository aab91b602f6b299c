// The builder's loops, subscripts and windows.

import Storage

extension QueryExpression {
  /// `ARRAY result FOR variable IN collection WHEN condition END`: the results for all items of an array.
  ///
  /// - Parameters:
  ///   - result: The result for one item. A missing result is left out.
  ///   - variable: The variable's name.
  ///   - collection: The array.
  ///   - condition: The condition that an item must meet. Nil takes all.
  public static func array(
    _ result: QueryExpression, for variable: String, in collection: QueryExpression,
    when condition: QueryExpression? = nil
  ) -> QueryExpression {
    .iteration(
      Iteration(.array, result, over: [VariableBinding(variable, in: collection)], condition: condition))
  }

  /// `FIRST result FOR variable IN collection WHEN condition END`: the result for the first item that meets the
  /// condition.
  ///
  /// - Parameters:
  ///   - result: The result for one item.
  ///   - variable: The variable's name.
  ///   - collection: The array.
  ///   - condition: The condition that an item must meet. Nil takes all.
  public static func first(
    _ result: QueryExpression, for variable: String, in collection: QueryExpression,
    when condition: QueryExpression? = nil
  ) -> QueryExpression {
    .iteration(
      Iteration(.first, result, over: [VariableBinding(variable, in: collection)], condition: condition))
  }

  /// `OBJECT name : result FOR variable IN collection WHEN condition END`: an object with a member for each item.
  ///
  /// - Parameters:
  ///   - name: The member's name, a text.
  ///   - result: The member's value. If it is missing, there is no member.
  ///   - variable: The variable's name.
  ///   - collection: The array.
  ///   - condition: The condition that an item must meet. Nil takes all.
  public static func object(
    _ name: QueryExpression, _ result: QueryExpression, for variable: String, in collection: QueryExpression,
    when condition: QueryExpression? = nil
  ) -> QueryExpression {
    .iteration(
      Iteration(
        .object, name: name, result, over: [VariableBinding(variable, in: collection)], condition: condition))
  }

  /// `WITHIN`: whether the value is in an array or object, at any depth.
  ///
  /// - Parameter collection: The array or object.
  public func within(_ collection: QueryExpression) -> QueryExpression {
    .within(self, in: collection, negated: false)
  }

  /// `e[index]`: the item of an array.
  ///
  /// - Parameter index: The position, from 0. Negative positions count from the end.
  public subscript(index: QueryExpression) -> QueryExpression { .subscripted(self, .element(index)) }

  /// `e[start:end]`: the items from the start up to, but not including, the end.
  ///
  /// - Parameters:
  ///   - start: The first position. Nil is the first item.
  ///   - end: The position after the last one. Nil is the end of the array.
  public func slice(from start: QueryExpression? = nil, to end: QueryExpression? = nil) -> QueryExpression {
    .subscripted(self, .slice(from: start, to: end))
  }

  /// `e.[name]`: the member of an object.
  ///
  /// - Parameter name: The member's name, a text.
  public func member(named name: QueryExpression) -> QueryExpression { .subscripted(self, .field(name)) }

  /// `FILTER (WHERE condition)` of an aggregate. Other expressions are unchanged.
  ///
  /// - Parameter condition: The condition that counted rows meet.
  public func filtered(_ condition: QueryExpression) -> QueryExpression {
    guard case .call(var call) = self else { return self }
    call.filter = condition
    return .call(call)
  }

  /// `OVER window` of an aggregate or a window function. Other expressions are unchanged.
  ///
  /// - Parameters:
  ///   - window: The window.
  ///   - countsFromLast: Whether NTH_VALUE counts from the last row of the frame.
  ///   - ignoresNulls: Whether rows with an unknown value are left out.
  public func over(
    _ window: WindowDefinition, countsFromLast: Bool = false, ignoresNulls: Bool = false
  ) -> QueryExpression {
    guard case .call(var call) = self else { return self }
    call.window = WindowCall(window, countsFromLast: countsFromLast, ignoresNulls: ignoresNulls)
    return .call(call)
  }
}
