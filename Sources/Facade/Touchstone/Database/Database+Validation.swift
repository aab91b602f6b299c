import Documents

extension Database {
  /// Sets a validation function, in place of one with the same name; nil removes it.
  ///
  /// ```swift
  /// try travel.setValidation("hotels have names") { revision, context in
  ///   guard !revision.isDeleted, revision.body["type"] == "hotel" else { return }
  ///   if revision.body["name"].string == nil { context.reject("a hotel needs a name") }
  /// }
  /// ```
  ///
  /// The functions are called inside the write transaction for each revision that is saved, deleted or comes from
  /// another database (`apply`), in the order of their names. A rejected write throws `DocumentError.rejected`
  /// and changes nothing. Purges, expirations, imports and the ends of branches that lost a conflict aren't
  /// validated.
  ///
  /// Functions aren't stored. They hold for all opens of this path in this process, from the next transaction on,
  /// until the last of them is closed. Set them right after opening the database.
  public func setValidation(_ name: String, _ validation: Validation?) throws {
    try store.setValidation(name, validation)
  }

  /// Returns the validation function with that name, or nil.
  public func validation(_ name: String) throws -> Validation? { try store.validation(name) }
}
