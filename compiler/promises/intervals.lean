/-! ## Intervals

A number in an interval, and intervals of sums, differences, products and reciprocals. -/

theorem icc_add {a b l u l' u' L U : ℝ} (ha : a ∈ Set.Icc l u) (hb : b ∈ Set.Icc l' u')
    (hL : L ≤ l + l') (hU : u + u' ≤ U) : a + b ∈ Set.Icc L U :=
  ⟨hL.trans (add_le_add ha.1 hb.1), (add_le_add ha.2 hb.2).trans hU⟩

theorem icc_sub {a b l u l' u' L U : ℝ} (ha : a ∈ Set.Icc l u) (hb : b ∈ Set.Icc l' u')
    (hL : L ≤ l - u') (hU : u - l' ≤ U) : a - b ∈ Set.Icc L U :=
  ⟨hL.trans (sub_le_sub ha.1 hb.2), (sub_le_sub ha.2 hb.1).trans hU⟩

theorem icc_neg {a l u L U : ℝ} (ha : a ∈ Set.Icc l u) (hL : L ≤ -u) (hU : -l ≤ U) :
    -a ∈ Set.Icc L U :=
  ⟨hL.trans (neg_le_neg ha.2), (neg_le_neg ha.1).trans hU⟩

theorem le_mul_between {a b l u L : ℝ} (ha : a ∈ Set.Icc l u) (hl : L ≤ l * b) (hu : L ≤ u * b) :
    L ≤ a * b := by
  rcases le_total 0 b with h | h
  · exact hl.trans (mul_le_mul_of_nonneg_right ha.1 h)
  · exact hu.trans (mul_le_mul_of_nonpos_right ha.2 h)

theorem mul_between_le {a b l u U : ℝ} (ha : a ∈ Set.Icc l u) (hl : l * b ≤ U) (hu : u * b ≤ U) :
    a * b ≤ U := by
  rcases le_total 0 b with h | h
  · exact (mul_le_mul_of_nonneg_right ha.2 h).trans hu
  · exact (mul_le_mul_of_nonpos_right ha.1 h).trans hl

theorem icc_mul {a b l u l' u' L U : ℝ} (ha : a ∈ Set.Icc l u) (hb : b ∈ Set.Icc l' u')
    (h1 : L ≤ l' * l) (h2 : L ≤ u' * l) (h3 : L ≤ l' * u) (h4 : L ≤ u' * u)
    (g1 : l' * l ≤ U) (g2 : u' * l ≤ U) (g3 : l' * u ≤ U) (g4 : u' * u ≤ U) :
    a * b ∈ Set.Icc L U := by
  have low : ∀ k : ℝ, L ≤ l' * k → L ≤ u' * k → L ≤ k * b := fun k h h' => by
    rw [mul_comm k b]
    exact le_mul_between hb h h'
  have high : ∀ k : ℝ, l' * k ≤ U → u' * k ≤ U → k * b ≤ U := fun k h h' => by
    rw [mul_comm k b]
    exact mul_between_le hb h h'
  exact ⟨le_mul_between ha (low l h1 h2) (low u h3 h4), mul_between_le ha (high l g1 g2) (high u g3 g4)⟩

theorem icc_inv {a l u L U : ℝ} (ha : a ∈ Set.Icc l u) (hl : 0 < l) (hL : 0 ≤ L) (hU : 0 ≤ U)
    (h1 : L * u ≤ 1) (h2 : 1 ≤ U * l) : a⁻¹ ∈ Set.Icc L U := by
  have h : 0 < a := hl.trans_le ha.1
  constructor
  · rw [← one_div, le_div_iff₀ h]
    exact (mul_le_mul_of_nonneg_left ha.2 hL).trans h1
  · rw [← one_div, div_le_iff₀ h]
    exact h2.trans (mul_le_mul_of_nonneg_left ha.1 hU)

theorem abs_le_of_icc {a l u B : ℝ} (ha : a ∈ Set.Icc l u) (hl : -B ≤ l) (hu : u ≤ B) : |a| ≤ B :=
  abs_le.2 ⟨hl.trans ha.1, ha.2.trans hu⟩
