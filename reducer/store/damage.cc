#include "reducer/store/damage.h"

#include "base/status.h"

namespace tributary::store {

absl::Status AdviseOnDamage(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return Error(status.code(), Message(status).append(": ").append(kRestoreAdvice));
}

bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) || absl::IsPermissionDenied(status);
}

}  // namespace tributary::store
