/-! ## The memory of constraints

`x (t + 1)` lies in the domain cut by the constraints of all rounds up to `t`. -/

/-- Domain cut by the constraints of rounds `0, ..., t`. -/
def seen (s : ℕ → Data) (t : ℕ) : Set Decision := {v | v ∈ domain ∧ ∀ q ≤ t, ∀ k, excess k v (s q) ≤ 0}

/-- Sum of what `n + 1` rounds break constraint `k` by. -/
theorem violation (x : ℕ → Decision) (s : ℕ → Data) (hs : ∀ t i, s t i ∈ Set.Icc (least i) (most i))
    (hx0 : x 0 ∈ domain) (hmem : ∀ t, x (t + 1) ∈ seen s t) (k : Fin constraints) (n : ℕ) :
    ∑ t ∈ range (n + 1), max (excess k (x t) (s t)) 0 ≤ V k := by
  have at_most : ∀ t, excess k point (s t) ∈ Set.Icc (pointLow k) (pointHigh k) := fun t =>
    excess_at_point (hs t) k
  have h := violation_le (fun t => excess k (x t) (s t)) (fun t => excess k point (s t)) (fun t q hq => by
    have seen_q := (hmem t).2 q hq k
    have add := additive k (x (t + 1)) point (s (t + 1)) (s q)
    linarith) n
  obtain ⟨q, _, hq⟩ := runningMax_attained (fun t => excess k point (s t)) n
  rw [hq] at h
  have add := additive k (x 0) point (s 0) (s q)
  have top := excess_le_high ⟨hx0, hs q⟩ k
  refine h.trans ?_
  rcases le_total (excess k (x 0) (s 0)) 0 with first | first
  · rw [max_eq_right first]
    linarith [(at_most q).2, (at_most 0).1, width_le_V k]
  · rw [max_eq_left first]
    linarith [high_le_V k]

/-- The point satisfies every constraint with its margin, whatever the data. -/
theorem slater (s : Data) (hs : ∀ i, s i ∈ Set.Icc (least i) (most i)) (k : Fin constraints) :
    point ∈ domain ∧ excess k point s ≤ -margin k :=
  ⟨point_mem, (excess_at_point hs k).2.trans (point_has_margin k)⟩
