// What an app needs of other modules with `import TouchstoneServer`.

@_exported import struct Replication.FilteredRevision
