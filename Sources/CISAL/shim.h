#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

// Swift doesn't see macros that are expressions.
static const uint32_t isal_level2_buffer_bytes = ISAL_DEF_LVL2_DEFAULT;
