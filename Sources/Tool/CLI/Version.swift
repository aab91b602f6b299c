/// The release version of the tool.
let touchstoneVersion = "0.3.0"
