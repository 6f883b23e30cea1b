// The Python module lvdet._native.
#include "bind_arrays.hpp"

NB_MODULE(_native, m) {
    lvdet::bind_read(m);
    lvdet::bind_masks(m);
    lvdet::bind_ranks(m);
    lvdet::bind_ledger(m);
    lvdet::bind_match(m);
    lvdet::bind_bootstrap(m);
    lvdet::bind_calibrate(m);
    lvdet::bind_plausibility(m);
    lvdet::bind_build(m);
}
