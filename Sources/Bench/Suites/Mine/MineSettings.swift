import BenchmarkKit
import FullText
import Query
import Touchstone

/// A query of one's own, with its name and the indexes that it wants.
package struct NamedQuery: Sendable {
  /// The name, unique among the queries of a run.
  package let name: String
  /// The text of the query.
  package let text: String
  /// The values of its parameters.
  package let parameters: [String: JSONValue]
  /// The indexes that it wants.
  package let indexes: [WantedIndex]

  /// Makes a query. See the properties.
  package init(name: String, text: String, parameters: [String: JSONValue] = [:], indexes: [WantedIndex] = [])
  {
    self.name = name
    self.text = text
    self.parameters = parameters
    self.indexes = indexes
  }
}

/// An index that a query wants.
package struct WantedIndex: Sendable, Hashable {
  /// What it indexes.
  package enum Definition: Sendable, Hashable {
    case value(ValueIndexDefinition)
    case fullText(FullTextIndexDefinition)
  }

  package let name: String
  package let definition: Definition

  /// Makes an index. See the properties.
  package init(name: String, _ definition: Definition) {
    self.name = name
    self.definition = definition
  }

  /// Makes the index in a database.
  package func make(in database: Database) throws {
    switch definition {
    case .value(let definition): try database.createIndex(name, definition)
    case .fullText(let definition): try database.createFullTextIndex(name, definition)
    }
  }
}

/// The settings of the suite `mine`.
package struct MineSettings: Sendable {
  /// The queries. Each runs with all indexes of all queries, and without.
  package var queries: [NamedQuery] = []
  /// The operations of the workload `mix`; nil if it doesn't run.
  package var mix: OperationMix?
  /// How long the mix runs on each database, in seconds.
  package var seconds = 20.0
  /// The numbers of threads of the mix.
  package var threads = [1]
  /// Operations of the mix per second, of all threads together; nil for full speed.
  package var rate: Int?
  /// How often a query runs in a sample; nil for as often as `querySeconds` allow. Needed where instructions are counted.
  package var executions: Int?
  /// How long a query is repeated in a sample, in seconds.
  package var querySeconds = 0.25
  /// The length of an interval of the time series, in seconds.
  package var interval = 1.0
  /// The most seconds to wait until the process is quiet.
  package var quietLimit = 60.0
  /// What results files tell about it, so that a gate can run it again.
  package var description: ResultsFile.OwnWork?

  /// Settings without queries and without a mix.
  package init() {}

  /// Sets what results files tell. `queries` is the text of the file of queries.
  package mutating func describe(queries: String?, idProperty: String?) {
    var work = ResultsFile.OwnWork()
    work.queries = queries
    work.idProperty = idProperty
    if let mix {
      (work.mix, work.longestScan) = (mix.text, mix.longestScan)
      (work.seconds, work.threads, work.rate) = (seconds, threads, rate)
    }
    description = work
  }

  /// The indexes of all queries, each once.
  var indexes: [WantedIndex] {
    var found: [WantedIndex] = []
    for index in queries.flatMap(\.indexes) where !found.contains(index) { found.append(index) }
    return found
  }
}
