import Storage

/// An engine that can tell which pages of its file are in use. After a power loss the others may hold any mixture of
/// old and new bytes.
package protocol PageUse: StorageEngine {
  /// Returns a test of the pages, by number: whether the last commit uses one.
  func pageUse() throws -> (_ page: Int) -> Bool
}
