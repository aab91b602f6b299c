import Testing

@testable import BLIP

@Suite struct WorkedFrameTests { @Test func x() {} }
