#include "intake/server/held_definitions.h"

#include <utility>

namespace tributary::intake {

void HeldDefinitions::Add(Definitions definitions) {
  bytes_ += MemoryOf(definitions);
  Append(definitions_, std::move(definitions));
}

IncomingBatch HeldDefinitions::Alone() const {
  IncomingBatch alone;
  alone.generation = generation_;
  alone.derived = derived_;
  alone.before = before_;
  alone.definitions = definitions_;
  return alone;
}

void HeldDefinitions::PutBefore(IncomingBatch* batch) const {
  Definitions definitions = definitions_;
  Append(definitions, std::move(batch->definitions));
  batch->definitions = std::move(definitions);
  batch->derived = derived_;
  batch->before = before_;
}

}  // namespace tributary::intake
