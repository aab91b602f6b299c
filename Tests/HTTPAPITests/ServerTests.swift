import Testing
import TestSupport
import HTTPAPI

@Suite struct ServerRequestTests {
  @Test func rootWelcomes() throws {
    let client = try APIClient()
    let response = try client.ask("GET", "/")
    #expect(response.status == 200)
    #expect(try response.json().object?["couchdb"]?.string == "Welcome")
  }

  @Test func databasesAreMadeAndDeleted() throws {
    let client = try APIClient()
    #expect(try client.ask("PUT", "/a%2Fb").status == 201)
    #expect(try client.ask("PUT", "/a%2Fb").status == 412)
    #expect(try client.ask("GET", "/a%2Fb").json().object?["db_name"]?.string == "a/b")
    #expect(try client.ask("DELETE", "/a%2Fb").status == 200)
    #expect(try client.ask("GET", "/a%2Fb").status == 404)
  }
}
