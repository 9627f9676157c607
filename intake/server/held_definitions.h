#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "intake/wire/messages.h"

namespace tributary::intake {

// Definitions of one dictionary generation that came ahead of their batch and wait for it.
class HeldDefinitions {
 public:
  // Takes the generation fields of the first message, and the counts at which its definitions continue.
  HeldDefinitions(uint32_t generation, std::optional<DerivedFrom> derived, const DictionaryCounts& before)
      : generation_(generation), derived_(std::move(derived)), before_(before) {}

  void Add(Definitions definitions);
  // Returns a copy of all definitions, without a batch. It is a copy because the owner may refuse the definitions, and
  // then gets them again.
  IncomingBatch Alone() const;
  // Copies all definitions to the front of the batch that follows them.
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
