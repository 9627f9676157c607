#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "intake/wire/messages.h"

namespace tributary::intake {

// Stores definitions of one dictionary generation that were received in messages before their batch, until the batch is
// received.
class HeldDefinitions {
 public:
  // `generation` and `derived` are from the first message. `before`: the counts at which its definitions continue.
  HeldDefinitions(uint32_t generation, std::optional<DerivedFrom> derived, const DictionaryCounts& before)
      : generation_(generation), derived_(std::move(derived)), before_(before) {}

  void Add(Definitions definitions);
  // Returns a copy of all definitions, without samples. The owner may refuse this copy. In this case, the owner later
  // gets the definitions again.
  IncomingBatch Alone() const;
  // Copies all definitions into `batch`, before its own definitions.
  void PutBefore(IncomingBatch* batch) const;

  size_t bytes() const { return bytes_; }

 private:
  const uint32_t generation_;
  const std::optional<DerivedFrom> derived_;
  const DictionaryCounts before_;
  Definitions definitions_;
  size_t bytes_ = 0;
};

}  // namespace tributary::intake
