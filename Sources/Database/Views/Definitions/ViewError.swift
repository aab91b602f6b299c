/// An error of a view: which view, and what is wrong.
public struct ViewError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no view of that name, or it has no map function in this process.
    case notFound
    /// The name of a view, or an option of a query, can't be.
    case invalidArgument
    /// A design document can't be read, or its language isn't known.
    case invalidDesign
    /// A key or a value that a map function emitted can't be stored.
    case invalidEmission
    /// A reduce function failed.
    case reduceFailed
    /// A script failed or was stopped.
    case scriptFailed
    /// A filter of a design document threw.
    case filterFailed
    /// A validation function of a design document threw what is no refusal.
    case validationFailed
    /// The database has as many views as it can have.
    case tooManyViews
    /// The rows don't fit the memory that a query may use.
    case tooManyRows
    /// Stored rows or definitions can't be read.
    case damaged
    /// A stored view has a format that this release doesn't know.
    case unsupportedVersion
    /// The view changed while its index was being updated, too often to go on.
    case busy
  }

  /// The kind of error.
  public let code: Code
  /// What was tried, what was found and what to do.
  public let message: String
  /// The name of the view.
  public let view: String?
  /// The document concerned.
  public let documentID: String?

  /// Makes an error.
  package init(_ code: Code, _ message: String, view: String? = nil, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.view = view
    self.documentID = documentID
  }

  /// The view, the message and the document.
  public var description: String {
    (view.map { "view '\($0)': " } ?? "") + message + (documentID.map { " (document '\($0)')" } ?? "")
  }
}

/// A document that a map function failed on. Its other rows, and other documents, aren't concerned.
public struct ViewFault: Sendable, Hashable, CustomStringConvertible {
  /// The view.
  public let view: String
  /// The document's ID.
  public let documentID: String
  /// What the function threw, or what it emitted that can't be stored.
  public let message: String

  package init(view: String, documentID: String, message: String) {
    self.view = view
    self.documentID = documentID
    self.message = message
  }

  /// The view, the document and the message in one line.
  public var description: String { "view '\(view)', document '\(documentID)': \(message)" }
}
