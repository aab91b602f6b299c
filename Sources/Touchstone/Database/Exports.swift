// The names that users of queries need. The syntax tree and the terms of the query builder come with `import
// Query`, because some of their names (`Expression`) are also used by other modules.
@_exported import enum FullText.FullTextLanguage
@_exported import enum FullText.StopWords
@_exported import struct FullText.TextAnalysisOptions
@_exported import class Query.Query
@_exported import class Query.QueryCancellation
@_exported import struct Query.FullTextIndexDefinition
@_exported import struct Query.QueryError
@_exported import struct Query.QueryExplanation
@_exported import struct Query.QueryResultValue
@_exported import struct Query.QueryResults
@_exported import struct Query.QueryRow
@_exported import struct Query.SelectStatement
@_exported import struct Query.ValueIndexDefinition
@_exported import struct Upgrade.UpgradeError
@_exported import struct Upgrade.UpgradeIssue
@_exported import struct Upgrade.UpgradeOptions
@_exported import struct Upgrade.UpgradeProgress
@_exported import struct Upgrade.UpgradeReport
