// Prints statements that change documents.

import Storage

extension Printer {
  mutating func put(_ statement: ChangeStatement) {
    switch statement.action {
    case .update(let assignments):
      put("UPDATE ")
      put(statement.target)
      put(assignments)
    case .delete:
      put("DELETE FROM ")
      put(statement.target)
    case .insert(let documents, let replaces):
      put(replaces ? "UPSERT INTO " : "INSERT INTO ")
      put(statement.target)
      put(documents)
    case .merge(let actions):
      put("MERGE INTO ")
      put(statement.target)
      put(actions)
    }
    put(" WHERE ", statement.condition)
    put(" LIMIT ", statement.limit)
    put(" OFFSET ", statement.offset)
    guard !statement.returning.isEmpty else { return }
    put(statement.isRaw ? " RETURNING RAW " : " RETURNING ")
    put(statement.returning) { printer, result in
      printer.putResult(result.expression, isRaw: statement.isRaw)
      printer.put(alias: result.alias)
    }
  }

  private mutating func put(_ assignments: Assignments) {
    if !assignments.set.isEmpty {
      put(" SET ")
      put(assignments.set) { printer, term in
        printer.write(term.path.steps)
        printer.put(" = ")
        printer.put(term.value)
        printer.put(term.loop)
      }
    }
    guard !assignments.unset.isEmpty else { return }
    put(" UNSET ")
    put(assignments.unset) { printer, term in
      printer.write(term.path.steps)
      printer.put(term.loop)
    }
  }

  private mutating func put(_ loop: AssignmentLoop?) {
    guard let loop else { return }
    for variable in loop.variables {
      put(" FOR ")
      put(name: variable.name)
      put(" IN ")
      write(variable.path.steps)
    }
    put(" WHEN ", loop.condition)
    put(" END")
  }

  private mutating func put(_ documents: InsertedDocuments) {
    switch documents {
    case .values(let rows):
      put(" (KEY, VALUE) VALUES ")
      put(rows) { printer, row in
        printer.put("(")
        printer.put(row) { $0.put($1) }
        printer.put(")")
      }
    case .rows(let query, let key, let value):
      put(" (KEY ")
      put(key)
      put(", VALUE ", value)
      put(") ")
      put(query)
    }
  }

  private mutating func put(_ actions: MergeActions) {
    put(" USING ")
    put(actions.source)
    put(" ON ")
    put(actions.on)
    if let update = actions.update {
      put(" WHEN MATCHED THEN UPDATE")
      put(update.assignments)
      put(" WHERE ", update.condition)
    }
    if let delete = actions.delete {
      put(" WHEN MATCHED THEN DELETE")
      put(" WHERE ", delete.condition)
    }
    if let insert = actions.insert {
      put(" WHEN NOT MATCHED THEN INSERT (KEY ")
      put(insert.key)
      put(", VALUE ", insert.value)
      put(")")
      put(" WHERE ", insert.condition)
    }
  }
}

extension ChangeStatement: CustomStringConvertible {
  /// The statement as text on one line.
  package var description: String {
    var printer = Printer()
    printer.put(self)
    return printer.text
  }
}
