import TestTools

@Suite("Variables of the environment") struct EnvironmentVariableTests {
  @Test("one that is set but empty is unset")
  func empty() {
    expect(EnvironmentVariable.meaning(of: nil) == nil)
    expect(EnvironmentVariable.meaning(of: "") == nil)
    expect(EnvironmentVariable.meaning(of: "0"), equals: "0")
    expect(EnvironmentVariable.value("TOUCHSTONE_WHICH_NOBODY_SETS") == nil)
    expect(EnvironmentVariable.value("PATH") != nil)
  }
}
