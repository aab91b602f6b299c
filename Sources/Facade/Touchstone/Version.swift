/// The release. The tool and the server tell it, and packages are named by it.
package let touchstoneVersion = "0.3.0"
