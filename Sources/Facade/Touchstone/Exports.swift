// What an app sees with `import Touchstone`, besides the types of this module. Everything that a public signature
// names is here, and nothing else: Tests/Facade/TouchstoneTests/PublicTypes.txt is the list, and a test compares both.

// Documents
@_exported import struct Documents.AllDocuments
@_exported import struct Documents.AllDocumentsRow
@_exported import enum Documents.ConcurrencyControl
@_exported import struct Documents.Document
@_exported import enum Documents.DocumentBody
@_exported import struct Documents.DocumentDecoder
@_exported import struct Documents.DocumentEncoder
@_exported import struct Documents.DocumentError
@_exported import protocol Documents.DocumentModel
@_exported import class Documents.DocumentSnapshot
@_exported import struct Documents.DocumentView
@_exported import struct Documents.LocalDocument
@_exported import struct Documents.ModelRevision
@_exported import struct Documents.MutableDocument
@_exported import struct Documents.SavedRevision
@_exported import struct Documents.ValidatedRevision
@_exported import typealias Documents.Validation
@_exported import class Documents.ValidationContext

// Properties and values
@_exported import protocol Documents.IndexedProperties
@_exported import protocol Documents.JSONConvertible
@_exported import protocol Documents.KeyedProperties
@_exported import struct Documents.Property
@_exported import struct Documents.PropertyArray
@_exported import struct Documents.PropertyDictionary
@_exported import protocol Documents.TypedValue
@_exported import enum Fleece.FleeceError
@_exported import struct Fleece.JSONObject
@_exported import enum Fleece.JSONValue
@_exported import struct Fleece.Key
@_exported import struct Fleece.Value
@_exported import enum Fleece.ValueType

// Blobs
@_exported import struct Blobs.BlobDigest
@_exported import class Blobs.BlobReader
@_exported import class Blobs.BlobWriter
@_exported import struct Blobs.StoredBlob
@_exported import struct Documents.Attachment
@_exported import struct Documents.Blob

// Revisions and conflicts
@_exported import struct Documents.ClosureConflictResolver
@_exported import struct Documents.Conflict
@_exported import enum Documents.ConflictResolution
@_exported import protocol Documents.ConflictResolver
@_exported import struct Documents.DefaultConflictResolver
@_exported import struct Documents.PulledRevision
@_exported import struct Documents.Revision
@_exported import struct Documents.RevisionID

// Changes
@_exported import struct Documents.Change
@_exported import struct Documents.DatabaseChange
@_exported import struct Documents.DocumentChange

// Checks and comparisons
@_exported import struct Documents.DocumentDifference
@_exported import struct Documents.IntegrityFault

// Queries
@_exported import class Query.Query
@_exported import class Query.QueryCancellation
@_exported import struct Query.QueryError
@_exported import struct Query.QueryExplanation
@_exported import struct Query.QueryLocation
@_exported import struct Query.QueryResultArray
@_exported import struct Query.QueryResultObject
@_exported import struct Query.QueryResultValue
@_exported import struct Query.QueryResults
@_exported import struct Query.QueryRow
@_exported import struct Query.RowChanges

// The query builder
@_exported import enum Query.ArrayExpression
@_exported import enum Query.ArrayFunction
@_exported import struct Query.Collation
@_exported import struct Query.DataSource
@_exported import struct Query.FullTextExpression
@_exported import enum Query.FullTextFunction
@_exported import enum Query.Function
@_exported import enum Query.Join
@_exported import enum Query.JoinClause
@_exported import enum Query.Meta
@_exported import struct Query.Ordering
@_exported import enum Query.QueryExpression
@_exported import struct Query.ResultColumn
@_exported import struct Query.SelectStatement
@_exported import typealias Query.SelectResult

// The syntax tree that the builder and the parser make
@_exported import enum Query.BinaryOperator
@_exported import struct Bytes.ByteString
@_exported import struct Query.ComputedMember
@_exported import struct Query.ConditionalBranch
@_exported import struct Query.FunctionCall
@_exported import struct Query.IndexReference
@_exported import struct Query.Iteration
@_exported import enum Query.JoinKind
@_exported import struct Query.LetBinding
@_exported import enum Query.Literal
@_exported import enum Query.MetaProperty
@_exported import struct Query.NamedWindow
@_exported import enum Query.NullsOrder
@_exported import struct Query.ObjectMember
@_exported import enum Query.PathStep
@_exported import struct Query.PropertyReference
@_exported import enum Query.Quantifier
@_exported import enum Query.SetCombination
@_exported import enum Query.SetOperator
@_exported import struct Query.SourceName
@_exported import struct Query.SourcePosition
@_exported import enum Query.Subscript
@_exported import enum Query.UnaryOperator
@_exported import enum Query.ValueTest
@_exported import struct Query.VariableBinding
@_exported import struct Query.WindowCall
@_exported import struct Query.WindowDefinition
@_exported import struct Query.WindowFrame
@_exported import struct Query.WithBinding

// Indexes and full text
@_exported import enum FullText.FullTextLanguage
@_exported import enum FullText.StopWords
@_exported import struct FullText.TextAnalysisOptions
@_exported import struct Query.FullTextIndexDefinition
@_exported import struct Query.ValueIndexDefinition

// Map/reduce views
@_exported import struct Scripts.ScriptError
@_exported import struct Scripts.ScriptLimits
@_exported import struct Views.GeoJSON
@_exported import struct Views.GeoPoint
@_exported import struct Views.GeoRect
@_exported import protocol Views.SpecialKey
@_exported import struct Views.SpecialKeyContent
@_exported import struct Views.TextKey
@_exported import class Views.View
@_exported import enum Views.ViewCollation
@_exported import struct Views.ViewEmitter
@_exported import struct Views.ViewError
@_exported import struct Views.ViewFault
@_exported import typealias Views.ViewMap
@_exported import struct Views.ViewQuery
@_exported import struct Views.ViewReduce
@_exported import struct Views.ValidationRefusal
@_exported import struct Views.ViewReduceError
@_exported import struct Views.ViewResults
@_exported import struct Views.ViewRow
@_exported import struct Views.ViewSort
@_exported import struct Views.ViewTextMatch
@_exported import struct Views.ViewUpdate
@_exported import enum Views.ViewUpdateMode
@_exported import struct Views.MappedDocument

// Keys and engines
@_exported import struct Encryption.EncryptionError
@_exported import struct Encryption.PassphraseStretching
@_exported import struct Encryption.UserKey
@_exported import enum Storage.Durability
@_exported import enum Storage.FileCreation
@_exported import struct System.StorageError

// Logs
@_exported import class Logs.FunctionSink
@_exported import enum Logs.Log
@_exported import enum Logs.LogDomain
@_exported import struct Logs.LogEntry
@_exported import class Logs.LogFiles
@_exported import enum Logs.LogLevel
@_exported import struct Logs.LogLevels
@_exported import protocol Logs.LogSink
@_exported import class Logs.StandardErrorSink

// Couchbase Lite: upgrade of 1.x, exchange with 2.x and 3.x
@_exported import struct CBLite2.CBLite2Error
@_exported import struct CBLite2.CBLite2ExportReport
@_exported import struct CBLite2.CBLite2ImportReport
@_exported import struct Upgrade.UpgradeError
@_exported import struct Upgrade.UpgradeIssue
@_exported import struct Upgrade.UpgradeOptions
@_exported import struct Upgrade.UpgradeProgress
@_exported import struct Upgrade.UpgradeReport
