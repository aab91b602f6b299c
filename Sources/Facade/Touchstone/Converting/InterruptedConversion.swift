import Storage

/// What becomes of a conversion or copy that ends early and can go on later.
enum InterruptedConversion {
  /// Runs a conversion that goes on with what an interrupted one has left.
  ///
  /// - Parameters:
  ///   - target: where the new database is made, for errors.
  ///   - keep: leaves what was made so far, and returns whether there is something. It is called after an error that may
  ///     pass.
  ///   - body: the conversion. It is called a second time, with true, if what was left turns out to be damaged or of another
  ///     conversion: it then begins anew.
  static func resuming<Result>(
    target: String, keep: () -> Bool, _ body: (_ again: Bool) throws -> Result
  ) throws -> Result {
    do {
      do { return try body(false) } catch  where isOfWhatWasLeft(error) { return try body(true) }
    } catch let error as StorageError where mayPass(error) {
      guard keep() else { throw error }
      throw StorageError(
        error.code,
        "\(error.message); what was copied to \(target) so far is kept, and the same operation goes on with it",
        path: error.path, engineCode: error.engineCode, engineMessage: error.engineMessage)
    }
  }

  /// Whether the same operation may succeed later.
  private static func mayPass(_ error: StorageError) -> Bool {
    switch error.code {
    case .ioError, .diskFull, .snapshotExpired, .conflict, .busy, .tooManyReaders, .readOnly: true
    default: false
    }
  }

  /// Whether an error may be of what an interrupted conversion has left.
  private static func isOfWhatWasLeft(_ error: any Error) -> Bool {
    switch error {
    case let error as StorageError:
      switch error.code {
      case .damaged, .notADatabase, .unsupportedVersion, .engineFailure, .notFound, .noSuchKeyspace: true
      default: false
      }
    case let error as DatabaseError: error.code == .wrongKey || error.code == .damaged
    default: false
    }
  }
}
