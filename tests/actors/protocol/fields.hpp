/// The fields of an aggregate one by one, through structured bindings: independent of the serialisation under test.
#pragma once

#include <tuple>

#include "actors/protocol/message_fields.hpp"

namespace troupe::tests {

/// References to all fields of `x`, in the order of their declaration.
template <class T>
auto fields_of(T& x) {
  constexpr auto kCount = actors::kFieldCount<T>;
  static_assert(kCount <= 35, "one more line, please");
  if constexpr (kCount == 0) {
    return std::tuple<>();
  } else if constexpr (kCount == 1) {
    auto& [aa] = x;
    return std::tie(aa);
  } else if constexpr (kCount == 2) {
    auto& [aa, ab] = x;
    return std::tie(aa, ab);
  } else if constexpr (kCount == 3) {
    auto& [aa, ab, ac] = x;
    return std::tie(aa, ab, ac);
  } else if constexpr (kCount == 4) {
    auto& [aa, ab, ac, ad] = x;
    return std::tie(aa, ab, ac, ad);
  } else if constexpr (kCount == 5) {
    auto& [aa, ab, ac, ad, ae] = x;
    return std::tie(aa, ab, ac, ad, ae);
  } else if constexpr (kCount == 6) {
    auto& [aa, ab, ac, ad, ae, af] = x;
    return std::tie(aa, ab, ac, ad, ae, af);
  } else if constexpr (kCount == 7) {
    auto& [aa, ab, ac, ad, ae, af, ag] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag);
  } else if constexpr (kCount == 8) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah);
  } else if constexpr (kCount == 9) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai);
  } else if constexpr (kCount == 10) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj);
  } else if constexpr (kCount == 11) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak);
  } else if constexpr (kCount == 12) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al);
  } else if constexpr (kCount == 13) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am);
  } else if constexpr (kCount == 14) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an);
  } else if constexpr (kCount == 15) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao);
  } else if constexpr (kCount == 16) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap);
  } else if constexpr (kCount == 17) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq);
  } else if constexpr (kCount == 18) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar);
  } else if constexpr (kCount == 19) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as);
  } else if constexpr (kCount == 20) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at);
  } else if constexpr (kCount == 21) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au);
  } else if constexpr (kCount == 22) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av);
  } else if constexpr (kCount == 23) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw);
  } else if constexpr (kCount == 24) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax);
  } else if constexpr (kCount == 25) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay);
  } else if constexpr (kCount == 26) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az);
  } else if constexpr (kCount == 27) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba] =
        x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba);
  } else if constexpr (kCount == 28) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb);
  } else if constexpr (kCount == 29) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc);
  } else if constexpr (kCount == 30) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd);
  } else if constexpr (kCount == 31) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd, be] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd, be);
  } else if constexpr (kCount == 32) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd, be, bf] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd, be, bf);
  } else if constexpr (kCount == 33) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd, be, bf, bg] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd, be, bf, bg);
  } else if constexpr (kCount == 34) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd, be, bf, bg, bh] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd, be, bf, bg, bh);
  } else if constexpr (kCount == 35) {
    auto& [aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay, az, ba,
           bb, bc, bd, be, bf, bg, bh, bi] = x;
    return std::tie(aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap, aq, ar, as, at, au, av, aw, ax, ay,
                    az, ba, bb, bc, bd, be, bf, bg, bh, bi);
  }
}

}  // namespace troupe::tests
