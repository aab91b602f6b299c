import CLMDB
import Storage

/// The trees of a commit. A check has found the pages that they start from sound (`PageCheck.Extent.roots`).
struct CheckedTrees {
  let meta: MetaPage
  let trees: [PageCheck.NamedTree]

  /// Checks a snapshot, which must stay open meanwhile. Throws `damaged`, and `busy` as `PageFile.meta(of:)`
  /// does.
  init(_ file: PageFile, of snapshot: OpaquePointer) throws {
    let meta = try file.meta(of: UInt64(mdb_txn_id(snapshot)))
    var check = PageCheck(file: file, meta: meta)
    check.run(.roots)
    check.checkMissingPages()
    try check.throwFirstFault()
    self.meta = meta
    trees = check.trees
  }

  private init(_ meta: MetaPage, _ trees: [PageCheck.NamedTree]) {
    self.meta = meta
    self.trees = trees
  }

  /// The same without the keyspaces of users.
  var withoutKeyspaces: CheckedTrees {
    CheckedTrees(meta, trees.filter { !KeyspaceName.isValid(String(decoding: $0.name, as: UTF8.self)) })
  }

  /// Returns whether these are the trees of a snapshot. A number of LMDB's stands for one commit.
  func areTrees(of snapshot: OpaquePointer) -> Bool { meta.transaction == UInt64(mdb_txn_id(snapshot)) }
}

extension PageCheck {
  /// Throws `damaged` with the first fault, if there is one. A page that the system can't read says nothing about the
  /// file: then the system's error.
  func throwFirstFault() throws {
    guard let fault = faults.first else { return }
    if let number = file.readFailure {
      throw StorageError.lmdb(number, "the file could not be read", path: file.path)
    }
    throw StorageError(.damaged, "the file is damaged or cut off: \(fault)", path: file.path)
  }
}
