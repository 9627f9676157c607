#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/status.h"
#include "k8s-collector/watch/exec_credential.h"

// The answer of an exec plug-in. Credentials that are accepted must be usable.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ExecCredential> credential = DecodeExecCredential(answer, kExecV1);
  if (!credential.ok()) return 0;
#ifdef TRIBUTARY_PLANT_CRASH
  if (credential->token == "7") abort();
#endif
  TRIBUTARY_CHECK(!credential->token.empty() || !credential->cert_pem.empty());
  TRIBUTARY_CHECK(credential->cert_pem.empty() == credential->key_pem.empty());
  TRIBUTARY_CHECK(credential->token.find_first_of("\r\n") == std::string::npos);
  return 0;
}
