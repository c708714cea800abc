/-! ## Gradient descent with projections

The distance to a point of all sets does not grow in a projection, and the sum of the steps telescopes. -/

section Descent

variable {E : Type*} [NormedAddCommGroup E] [InnerProductSpace ℝ E]

theorem projection_nearer {K : Set E} (hK : Convex ℝ K) {y z u : E} (hz : z ∈ K)
    (h : ‖y - z‖ = ⨅ w : K, ‖y - w‖) (hu : u ∈ K) : ‖z - u‖ ^ 2 ≤ ‖y - u‖ ^ 2 := by
  have hin : inner ℝ (y - z) (u - z) ≤ 0 := (norm_eq_iInf_iff_real_inner_le_zero hK hz).1 h u hu
  have e : y - u = (y - z) - (u - z) := by abel
  have hsq : ‖y - u‖ ^ 2 = ‖y - z‖ ^ 2 - 2 * inner ℝ (y - z) (u - z) + ‖u - z‖ ^ 2 := by
    rw [e, norm_sub_sq_real]
  rw [hsq, norm_sub_rev z u]
  linarith [sq_nonneg ‖y - z‖]

/-- One step of inverse length `α`. -/
theorem step_bound {K : Set E} (hK : Convex ℝ K) {x z g u : E} {α : ℝ} (hα : 0 ≤ α)
    (hg : α = 0 → g = 0) (hz : z ∈ K) (h : ‖x - α⁻¹ • g - z‖ = ⨅ w : K, ‖x - α⁻¹ • g - w‖)
    (hu : u ∈ K) :
    inner ℝ g (x - u) ≤ α * (‖x - u‖ ^ 2 - ‖z - u‖ ^ 2) / 2 + ‖g‖ ^ 2 / (2 * α) := by
  rcases hα.eq_or_lt with h0 | h0
  · rw [hg h0.symm, ← h0]
    simp
  · have near := projection_nearer hK hz h hu
    have e : x - α⁻¹ • g - u = (x - u) - α⁻¹ • g := by abel
    have hsq : ‖x - α⁻¹ • g - u‖ ^ 2
        = ‖x - u‖ ^ 2 - 2 * (α⁻¹ * inner ℝ g (x - u)) + α⁻¹ ^ 2 * ‖g‖ ^ 2 := by
      rw [e, norm_sub_sq_real, real_inner_smul_right, real_inner_comm g (x - u), norm_smul,
        mul_pow, Real.norm_eq_abs, sq_abs]
    rw [hsq] at near
    have half : 0 ≤ α / 2 := by positivity
    have scaled := mul_le_mul_of_nonneg_left near half
    have one : α * α⁻¹ = 1 := mul_inv_cancel₀ h0.ne'
    have e1 : α / 2 * (‖x - u‖ ^ 2 - 2 * (α⁻¹ * inner ℝ g (x - u)) + α⁻¹ ^ 2 * ‖g‖ ^ 2)
        = α * ‖x - u‖ ^ 2 / 2 - (α * α⁻¹) * inner ℝ g (x - u)
          + (α * α⁻¹) * (‖g‖ ^ 2 / (2 * α)) := by ring
    rw [e1, one] at scaled
    linarith

theorem telescope (α δ : ℕ → ℝ) (D : ℝ) (hα : Monotone α) (h0 : ∀ t, 0 ≤ α t)
    (hδ : ∀ t, δ t ^ 2 ≤ D ^ 2) (n : ℕ) :
    ∑ t ∈ range (n + 1), α t * (δ t ^ 2 - δ (t + 1) ^ 2) ≤ α n * (D ^ 2 - δ (n + 1) ^ 2) := by
  induction n with
  | zero =>
    simp only [zero_add, sum_range_one]
    exact mul_le_mul_of_nonneg_left (sub_le_sub_right (hδ 0) _) (h0 0)
  | succ n ih =>
    rw [sum_range_succ]
    have h1 : 0 ≤ α (n + 1) - α n := sub_nonneg.2 (hα (Nat.le_succ n))
    have h2 : 0 ≤ D ^ 2 - δ (n + 1) ^ 2 := sub_nonneg.2 (hδ (n + 1))
    nlinarith [mul_nonneg h1 h2]

/-- Descent on sets that all hold `u`, with steps of nondecreasing inverse lengths `α`. -/
theorem regret_of_steps (K : ℕ → Set E) (hK : ∀ t, Convex ℝ (K t)) (x g : ℕ → E) (u : E)
    (α : ℕ → ℝ) (D : ℝ) (hα : Monotone α) (h0 : ∀ t, 0 ≤ α t) (hg : ∀ t, α t = 0 → g t = 0)
    (hx : ∀ t, x (t + 1) ∈ K t)
    (hstep : ∀ t, ‖x t - (α t)⁻¹ • g t - x (t + 1)‖ = ⨅ w : K t, ‖x t - (α t)⁻¹ • g t - w‖)
    (hu : ∀ t, u ∈ K t) (hD : ∀ t, ‖x t - u‖ ≤ D) (n : ℕ) :
    ∑ t ∈ range (n + 1), inner ℝ (g t) (x t - u)
      ≤ α n * D ^ 2 / 2 + ∑ t ∈ range (n + 1), ‖g t‖ ^ 2 / (2 * α t) := by
  have hs : ∀ t ∈ range (n + 1), inner ℝ (g t) (x t - u)
      ≤ α t * (‖x t - u‖ ^ 2 - ‖x (t + 1) - u‖ ^ 2) / 2 + ‖g t‖ ^ 2 / (2 * α t) :=
    fun t _ => step_bound (hK t) (h0 t) (hg t) (hx t) (hstep t) (hu t)
  have hδ : ∀ t, ‖x t - u‖ ^ 2 ≤ D ^ 2 := fun t => pow_le_pow_left₀ (norm_nonneg _) (hD t) 2
  have ht : ∑ t ∈ range (n + 1), α t * (‖x t - u‖ ^ 2 - ‖x (t + 1) - u‖ ^ 2)
      ≤ α n * (D ^ 2 - ‖x (n + 1) - u‖ ^ 2) := telescope α (fun t => ‖x t - u‖) D hα h0 hδ n
  have hsum := sum_le_sum hs
  rw [sum_add_distrib, ← sum_div] at hsum
  have last : 0 ≤ α n * ‖x (n + 1) - u‖ ^ 2 := mul_nonneg (h0 n) (sq_nonneg _)
  have e : α n * (D ^ 2 - ‖x (n + 1) - u‖ ^ 2) = α n * D ^ 2 - α n * ‖x (n + 1) - u‖ ^ 2 := by ring
  rw [e] at ht
  linarith

theorem div_sqrt_le (A a : ℝ) (hA : 0 ≤ A) (ha : 0 ≤ a) : a / √(A + a) ≤ 2 * (√(A + a) - √A) := by
  have h1 : √A ≤ √(A + a) := Real.sqrt_le_sqrt (by linarith)
  rcases (Real.sqrt_nonneg (A + a)).eq_or_lt with h | h
  · rw [← h] at h1 ⊢
    rw [div_zero]
    linarith
  · rw [div_le_iff₀ h]
    have s1 := Real.mul_self_sqrt (by linarith : (0 : ℝ) ≤ A + a)
    have s2 := Real.mul_self_sqrt hA
    nlinarith [sq_nonneg (√(A + a) - √A)]

/-- The sum behind steps of AdaGrad; with `a = 1` that of 1 / √t. -/
theorem sum_div_sqrt_le (a : ℕ → ℝ) (ha : ∀ t, 0 ≤ a t) (n : ℕ) :
    ∑ t ∈ range n, a t / √(∑ r ∈ range (t + 1), a r) ≤ 2 * √(∑ r ∈ range n, a r) := by
  induction n with
  | zero => simp
  | succ n ih =>
    have h := div_sqrt_le (∑ r ∈ range n, a r) (a n) (sum_nonneg fun t _ => ha t) (ha n)
    have e : ∑ r ∈ range (n + 1), a r = ∑ r ∈ range n, a r + a n := sum_range_succ a n
    rw [← e] at h
    have e' : ∑ t ∈ range (n + 1), a t / √(∑ r ∈ range (t + 1), a r)
        = ∑ t ∈ range n, a t / √(∑ r ∈ range (t + 1), a r) + a n / √(∑ r ∈ range (n + 1), a r) :=
      sum_range_succ (fun t => a t / √(∑ r ∈ range (t + 1), a r)) n
    rw [e']
    linarith

theorem norm_le_of_entries {k : ℕ} (g : EuclideanSpace ℝ (Fin k)) (b : Fin k → ℝ) (G : ℝ) (hG : 0 ≤ G)
    (h : ∀ i, |g i| ≤ b i) (hb : ∑ i, b i ^ 2 ≤ G ^ 2) : ‖g‖ ≤ G := by
  rw [EuclideanSpace.norm_eq]
  refine Real.sqrt_le_iff.2 ⟨hG, le_trans (sum_le_sum fun i _ => ?_) hb⟩
  rw [Real.norm_eq_abs]
  exact pow_le_pow_left₀ (abs_nonneg _) (h i) 2

end Descent
