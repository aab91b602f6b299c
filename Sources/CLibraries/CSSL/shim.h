#include <openssl/ssl.h>

// Swift doesn't import macros that shift.
static const uint64_t csslNoRenegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t csslNoTickets = SSL_OP_NO_TICKET;
static const uint64_t csslServerPreference = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t csslIgnoreUnexpectedEnd = SSL_OP_IGNORE_UNEXPECTED_EOF;
