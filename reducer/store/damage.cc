#include "reducer/store/damage.h"

#include "base/status.h"

namespace tributary::store {

absl::Status AdviseOnDamage(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return Error(status.code(), Message(status) +
                                  ": restore it from a backup, or move it away while the reducer is stopped: the "
                                  "reducer then creates an empty one");
}

}  // namespace tributary::store
