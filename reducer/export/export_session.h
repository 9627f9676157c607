#pragma once

#include "reducer/store/export_position.h"

namespace tributary {

// Returns a new random session. Ends the program if the kernel has no random numbers.
store::ExportSession NewExportSession();

}  // namespace tributary
