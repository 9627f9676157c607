#include "reducer/store/damage.h"

#include "base/status.h"

namespace tributary::store {

absl::Status AdviseOnDamage(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return Error(status.code(), Message(status) +
                                  ": restore the file from a backup, or stop the reducer and move the file away: the "
                                  "reducer then creates an empty file");
}

bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) || absl::IsPermissionDenied(status);
}

}  // namespace tributary::store
