import TestSupport
@testable import Touchstone

@testable import Blobs

extension Database {
  var blobStore: BlobStore {
    get throws {
      guard let blobs = try store.blobs else { throw DocumentError(.notFound, "there is no place for blobs") }
      return blobs
    }
  }

  /// How many blobs have a file.
  var blobFileCount: Int { get throws { try blobStore.files().count } }
}
